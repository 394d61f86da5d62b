import { startAgent } from '../agent/agent.ts';
import { loadAgentConfig } from '../agent/config.ts';
import { systemClock } from '../lib/clock.ts';
import { systemRandom } from '../lib/random.ts';
import { setupOf } from './agent-setup.ts';
import { stderrLog, untilStopped, writeReadyFile } from './daemon.ts';

/** `paybox agent`: the box daemon until a signal. */
export async function agent(options: { config: string; readyFile?: string }): Promise<void> {
  const config = await loadAgentConfig(options.config);
  const log = stderrLog();
  const terminal = process.stdout.isTTY ? process.stdout : undefined;
  const running = await startAgent(setupOf(config), { clock: systemClock, random: systemRandom, log, terminal });
  if (options.readyFile !== undefined) await writeReadyFile(options.readyFile, { boxUrl: running.origin });
  log.info('ready', { box: running.origin });
  await untilStopped(log, () => running.close());
}
