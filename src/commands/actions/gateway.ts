import { loadGatewayConfig } from '../../gateway/config/config.ts';
import { startGateway } from '../../gateway/gateway.ts';
import { systemClock } from '../../lib/clock.ts';
import { stderrLog } from '../../lib/log.ts';
import { systemRandom } from '../../lib/random.ts';
import { serviceManager } from '../../lib/systemd.ts';
import { endAtOnce, forgetReadyFile, untilStopped, writeReadyFile } from '../shared/daemon.ts';
import { StopSignal } from '../shared/stop-signal.ts';

/** Runs `paybox gateway`, the mock of the payment QR service, until a signal. */
export async function gateway(options: { config: string; readyFile?: string }): Promise<void> {
  const stop = new StopSignal();
  const config = await loadGatewayConfig(options.config);
  if (options.readyFile !== undefined) await forgetReadyFile(options.readyFile);
  const log = stderrLog();
  const manager = serviceManager(process.env, process.pid, log);
  // READY although it waits: the start must not block until the other gateway ends.
  const onStandby = (reason: string) => manager?.notify({ READY: '1', STATUS: `standby: ${reason}` });
  const world = { clock: systemClock, random: systemRandom, log, onStandby };
  const running = await stop.started(startGateway(config, world));
  void running.superseded?.then((error) => endAtOnce(error, log));
  const { baseUrl, mqttUrl, origin } = running;
  if (options.readyFile !== undefined) {
    await writeReadyFile(options.readyFile, { baseUrl, mqttUrl, consoleUrl: `${origin}/` });
  }
  log.info('ready', { baseUrl, mqttUrl, console: `${origin}/` });
  manager?.notify({ READY: '1', STATUS: `ready at ${baseUrl}` });
  await untilStopped(stop, log, (withinMs) => {
    manager?.notify({ STOPPING: '1', STATUS: 'stopping' });
    return running.close(withinMs);
  });
}
