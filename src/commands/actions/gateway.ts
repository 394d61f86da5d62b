import { type GatewayConfig, loadGatewayConfig } from '../../gateway/config/config.ts';
import { type Gateway, startGateway } from '../../gateway/gateway.ts';
import { systemClock } from '../../lib/clock.ts';
import { stderrLog } from '../../lib/log.ts';
import { systemRandom } from '../../lib/random.ts';
import { serviceManager } from '../../lib/systemd.ts';
import { endAtOnce, forgetReadyFile, untilStopped, writeReadyFile } from '../shared/daemon.ts';
import { StopSignal } from '../shared/stop-signal.ts';
import { RestartingGateway } from './restarting-gateway.ts';

/** Runs `paybox gateway`, the mock of the payment QR service, until a signal. */
export async function gateway({ config: file, readyFile }: { config: string; readyFile?: string }): Promise<void> {
  const stop = new StopSignal();
  const config = await loadGatewayConfig(file);
  if (readyFile !== undefined) await forgetReadyFile(readyFile);
  const log = stderrLog();
  const manager = serviceManager(process.env, process.pid, log);
  // READY although it waits: the start must not block until the other gateway ends.
  const onStandby = (reason: string) => manager?.notify({ READY: '1', STATUS: `standby: ${reason}` });
  const world = { clock: systemClock, random: systemRandom, log, onStandby };
  const ready = async ({ baseUrl, mqttUrl, origin }: Gateway) => {
    if (readyFile !== undefined) await writeReadyFile(readyFile, { baseUrl, mqttUrl, consoleUrl: `${origin}/` });
    log.info('ready', { baseUrl, mqttUrl, console: `${origin}/` });
    manager?.notify({ READY: '1', STATUS: `ready at ${baseUrl}` });
  };
  const away = async (reason: string) => {
    manager?.notify({ STATUS: `starts again: ${reason}` });
    if (readyFile !== undefined) await forgetReadyFile(readyFile);
  };
  const first = await stop.started(startGateway(config, world));
  const isAlone = config.cluster === undefined;
  // Nobody shares the store of a gateway alone: the other gateway owns it now.
  if (isAlone) void first.superseded?.then((error) => endAtOnce(error, log));
  await ready(first);
  const start = () => startGateway(atPortOf(first, config), world);
  const restart = { clock: systemClock, log, start, away, ready };
  const running = isAlone ? first : new RestartingGateway(first, restart);
  await untilStopped(stop, log, (withinMs) => {
    manager?.notify({ STOPPING: '1', STATUS: 'stopping' });
    return running.close(withinMs);
  });
}

/** Returns the configuration with the port that the gateway got, if the file leaves it to the system. */
function atPortOf({ origin }: Gateway, config: GatewayConfig): GatewayConfig {
  const port = config.http.port === 0 ? Number(new URL(origin).port) : config.http.port;
  return { ...config, http: { ...config.http, port } };
}
