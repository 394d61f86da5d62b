import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GATEWAY_LOGIN } from '../../src/device/setup/brokers.ts';
import { acceptsMqtt, type BrokerCluster, brokerNode } from '../support/broker-node.ts';
import { writeMosquittoConfig } from '../support/mosquitto.ts';
import { startNats } from '../support/nats.ts';
import { freePort } from '../support/net.ts';
import { findProgram, PROGRAMS } from '../support/programs.ts';
import { startRabbitmq } from '../support/rabbitmq.ts';

export const BROKERS = ['mosquitto', 'rabbitmq', 'nats'] as const;
export type BrokerName = (typeof BROKERS)[number];

/** Starts a broker for these logins, of three nodes if it can be a cluster. The caller closes it. */
export function startBroker(name: BrokerName, logins: Readonly<Record<string, string>>): Promise<BrokerCluster> {
  if (name === 'rabbitmq') return startRabbitmq(logins);
  return name === 'nats' ? startNats(logins) : startMosquitto(logins);
}

async function startMosquitto(logins: Readonly<Record<string, string>>): Promise<BrokerCluster> {
  const folder = await mkdtemp(join(tmpdir(), 'paybox-mosquitto-'));
  const port = await freePort();
  const program = findProgram(PROGRAMS.mosquitto) ?? 'mosquitto';
  const file = await writeMosquittoConfig(folder, port, logins);
  const login = { username: GATEWAY_LOGIN, password: logins[GATEWAY_LOGIN] ?? '' };
  const node = brokerNode(port, 'Mosquitto', [program, '-c', file], () => acceptsMqtt(port, login));
  const close = async () => {
    await node.signal('SIGKILL');
    await rm(folder, { recursive: true, force: true });
  };
  await node.start().catch(async (error: unknown) => {
    await close();
    throw error;
  });
  return { nodes: [node], close };
}
