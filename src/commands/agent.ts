import { type Agent, startAgent } from '../agent/agent.ts';
import { loadAgentConfig } from '../agent/config.ts';
import { keepTold } from '../agent/systemd.ts';
import { systemClock } from '../lib/clock.ts';
import { systemRandom } from '../lib/random.ts';
import { serviceManager } from '../lib/systemd.ts';
import { setupOf } from './agent-setup.ts';
import { forgetReadyFile, StopSignal, stderrLog, untilStopped, writeReadyFile } from './daemon.ts';
import { takeTerminal } from './terminal.ts';

/** `paybox agent`: the box daemon until a signal. */
export async function agent(options: { config: string; readyFile?: string }): Promise<void> {
  const stop = new StopSignal();
  const config = await loadAgentConfig(options.config);
  if (options.readyFile !== undefined) await forgetReadyFile(options.readyFile);
  const log = stderrLog();
  const io = { clock: systemClock, random: systemRandom, log };
  let box: Agent | undefined;
  const { output, keyboard } = takeTerminal(io, (key) => box?.window.press(key));
  const deps = { ...io, terminal: output, terminalInput: keyboard };
  const running = await stop.started(startAgent(setupOf(config), deps)).catch((error: unknown) => {
    keyboard?.close();
    throw error;
  });
  box = running;
  if (options.readyFile !== undefined) await writeReadyFile(options.readyFile, { boxUrl: running.origin });
  log.info('ready', { box: running.origin });
  const manager = serviceManager(process.env, process.pid, log);
  const stopping = new AbortController();
  if (manager !== undefined) void keepTold(manager, running, systemClock, stopping.signal);
  await untilStopped(stop, log, (withinMs) => {
    stopping.abort();
    manager?.tell({ STOPPING: '1', STATUS: 'stopping' });
    keyboard?.close();
    return running.close(withinMs);
  });
}
