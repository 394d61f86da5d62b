import { isExposed } from '../../../lib/tls.ts';
import { macWithColons } from '../../../protocol/dialect.ts';
import { BROKER_SCHEMES } from '../../../protocol/packet-limit.ts';
import type { BoxClient } from '../../engine/clients/box.ts';
import { agentConfigFor, dialectLogin, generateBoxes } from '../../engine/targets/config.ts';
import { type AgentStarter, waitUntilReady } from '../../engine/targets/managed.ts';
import { realTime } from '../../engine/test-time.ts';
import { type EmulatedBoxOptions, emulatedControls } from '../box/emulated-box.ts';
import { controlsOf, type ExternalBoxOptions, urlAt } from '../box/external-box.ts';
import { type DialectIdentity, ScriptedService } from './scripted-service.ts';
import { type AskPerson, type DialectSubject, waitForEnrolment } from './subject.ts';

/** Long enough on a busy machine. */
const START_MS = 60_000;

/** Starts a box of the bench with a scripted service. Throws MissingPeerError when the box does not enrol. */
export async function openEmulatedDialectBox(
  starter: AgentStarter,
  { transport, probe, random, signal }: EmulatedBoxOptions,
): Promise<DialectSubject> {
  const { time } = starter;
  const [made] = generateBoxes(1, true, random);
  if (made === undefined) throw new Error('there is no box');
  const { username, password, ...login } = dialectLogin(made);
  const identity = { ...made, ...login, login: { username, password } };
  const service = await ScriptedService.open({ host: '127.0.0.1', port: 0 }, identity, { clock: time.clock, random });
  const configIn = async (folder: string, boxPort: number) =>
    agentConfigFor({ httpPort: 0, mqttPort: service.broker.port, transport, folder }, made, boxPort);
  const arrived = async (at: BoxClient) => {
    await waitForEnrolment(service, { time, withinMs: START_MS, signal });
    // The first picture takes real time. Nothing has linked the box so far.
    if (service.isHeard) await time.inRealTime(() => waitUntilReady(at, time, signal, ['starting']));
  };
  const controls = await emulatedControls(starter, { made, probe, configIn, arrived, gateway: service });
  return { identity, time, service, controls };
}

export interface ExternalDialectBoxOptions extends ExternalBoxOptions<DialectIdentity> {
  /** Asks whoever is at the box. */
  ask?: AskPerson | undefined;
}

/** Waits for a box of the public dialect, as `openExternalBox` does. */
export async function openExternalDialectBox(options: ExternalDialectBoxOptions): Promise<DialectSubject> {
  const { identity, place, tls, withinMs, random, signal, onListening, onProgress, ask } = options;
  const { terminalCode } = identity;
  const time = realTime;
  const at = { host: place.host, port: place.mqttPort };
  const service = await ScriptedService.open(at, identity, { clock: time.clock, random, tls: tls?.valid });
  try {
    onListening(whereToConnect(service, place.host));
    await waitForEnrolment(service, { time, withinMs, signal, onProgress });
    const controls = await controlsOf(options, { terminalCode, serialNumber: terminalCode }, () => service.close());
    return { identity, time, service, controls: { ...controls, ask } };
  } catch (error) {
    await service.close();
    throw error;
  }
}

/** Returns instructions for a person who sets up the box. */
function whereToConnect({ identity, broker }: ScriptedService, host: string): string[] {
  const url = urlAt(broker.tls === undefined ? 'mqtt' : 'mqtts', host, broker.port);
  const { macAddr, login } = identity;
  const plain = isExposed(url, BROKER_SCHEMES)
    ? ['without TLS: an agent of paybox wants link.allowPlain: true for that']
    : [];
  return [
    `waiting for the enrolment of ${macWithColons(macAddr)} at`,
    `  ${url}`,
    login === undefined
      ? 'any user name and password'
      : `user name ${login.username}, and the password of --password-file`,
    ...plain,
  ];
}
