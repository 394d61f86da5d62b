import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '../../src/bench/engine/free-ports.ts';
import { GATEWAY_LOGIN } from '../../src/device/setup/brokers.ts';
import { NATS_USERS, natsConfig, withNatsUsers } from '../../src/device/setup/nats.ts';
import { acceptsMqtt, type BrokerCluster, brokerNode } from './broker-node.ts';
import { findProgram, PROGRAMS } from './programs.ts';

/** Starts NATS servers that share their messages, with the files that provision writes but for TLS. The caller closes them. */
export async function startNats(logins: Readonly<Record<string, string>>, count = 3): Promise<BrokerCluster> {
  const login = { username: GATEWAY_LOGIN, password: logins[GATEWAY_LOGIN] ?? '' };
  const folder = await mkdtemp(join(tmpdir(), 'paybox-nats-'));
  const ports = await freePorts(3 * count);
  const routes = Array.from({ length: count }, (_, i) => `nats://127.0.0.1:${ports[3 * i + 2]}`);
  const program = findProgram(PROGRAMS.nats) ?? 'nats-server';
  const nodes = await Promise.all(
    routes.map(async (_, i) => {
      const own = join(folder, `node-${i}`);
      await mkdir(own);
      const [mqtt = 0, clients, cluster] = ports.slice(3 * i);
      await writeFile(join(own, 'nats.conf'), natsConfig(own).replace(/^ {2}tls \{[^}]*\}\n/m, ''));
      await writeFile(join(own, 'users.conf'), withNatsUsers(NATS_USERS, logins));
      await writeFile(
        join(own, 'node.conf'),
        `server_name: node${i}
mqtt_listen: "127.0.0.1:${mqtt}"
replicas: ${count}
listen: "127.0.0.1:${clients}"
jetstream { store_dir: "${own}/store" }
cluster { name: test, listen: "127.0.0.1:${cluster}", routes: ${JSON.stringify(routes)} }
`,
      );
      return brokerNode(mqtt, `NATS ${i}`, [program, '-c', join(own, 'nats.conf')], () => acceptsMqtt(mqtt, login));
    }),
  );
  const close = async () => {
    await Promise.all(nodes.map((node) => node.signal('SIGKILL')));
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    await Promise.all(nodes.map((node) => node.start()));
    return { nodes, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Starts one server with the very files that provision has made in this folder, but for addresses beside MQTT. */
export async function startProvisionedNats(made: string, port: number, isReady: () => Promise<boolean>) {
  const [clients] = await freePorts(1);
  const node = join(made, 'nats/node.conf');
  const text = await readFile(node, 'utf8');
  await writeFile(node, text.replace(':4222', `:${clients}`).replace('/var/lib/nats', join(made, 'nats/store')));
  const program = findProgram(PROGRAMS.nats) ?? 'nats-server';
  const server = brokerNode(port, 'NATS', [program, '-c', join(made, 'nats/nats.conf')], isReady);
  const close = () => server.signal('SIGKILL');
  try {
    await server.start();
    return { close };
  } catch (error) {
    await close();
    throw error;
  }
}
