import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '../../src/bench/engine/free-ports.ts';
import { GATEWAY_LOGIN } from '../../src/device/setup/brokers.ts';
import { RABBITMQ_DEFINITIONS, rabbitmqConfig, withRabbitmqUsers } from '../../src/device/setup/rabbitmq.ts';
import { acceptsMqtt, type BrokerCluster, brokerNode } from './broker-node.ts';
import { findProgram, type Program } from './programs.ts';

/** The script itself: the command of the package changes to its own user and folders. */
const SCRIPTS = '/usr/lib/rabbitmq/lib/*/sbin/rabbitmq-server';
const EPMD: Program = { command: 'epmd', debianPackage: 'erlang-base' };

/** Starts RabbitMQ nodes in one cluster, with the files that provision writes but for TLS. The caller closes them. */
export async function startRabbitmq(logins: Readonly<Record<string, string>>, count = 3): Promise<BrokerCluster> {
  const login = { username: GATEWAY_LOGIN, password: logins[GATEWAY_LOGIN] ?? '' };
  const folder = await mkdtemp(join(tmpdir(), 'paybox-rabbitmq-'));
  await mkdir(join(folder, 'rabbitmq'));
  const definitions = withRabbitmqUsers(RABBITMQ_DEFINITIONS, logins, 'definitions');
  await writeFile(join(folder, 'rabbitmq/definitions.json'), definitions);
  const ports = await freePorts(count);
  const files = ports.map(async (port, i) => {
    const plain = rabbitmqConfig(folder, port, true)
      .replace('mqtt.listeners.tcp = none', `mqtt.listeners.tcp.default = 127.0.0.1:${port}`)
      .replaceAll(/^(mqtt\.listeners\.ssl|ssl_).*\n/gm, '');
    // The first joins nobody: it need not look for the others.
    const peers = Array.from(
      { length: i === 0 ? 1 : count },
      (_, at) => `cluster_formation.classic_config.nodes.${at + 1} = ${nameOf(at)}\n`,
    );
    const file = join(folder, `node-${i}.conf`);
    await writeFile(file, `${plain}cluster_formation.peer_discovery_backend = classic_config\n${peers.join('')}`);
    return file;
  });
  return startNodes(folder, ports, await Promise.all(files), (port) => acceptsMqtt(port, login));
}

/** Starts one node with the very files that provision has made in this folder. */
export async function startProvisionedRabbitmq(made: string, port: number, isReady: () => Promise<boolean>) {
  const folder = await mkdtemp(join(tmpdir(), 'paybox-rabbitmq-'));
  return startNodes(folder, [port], [join(made, 'rabbitmq/rabbitmq.conf')], isReady);
}

const nameOf = (node: number) => `node${node}@localhost`;

/** Starts a node for each port and file; its data are in `folder`, which goes with them. */
async function startNodes(
  folder: string,
  mqttPorts: readonly number[],
  files: readonly string[],
  isReady: (port: number) => Promise<boolean>,
): Promise<BrokerCluster> {
  const [epmdPort = 0, ...ports] = await freePorts(1 + mqttPorts.length);
  // Of our own, so that the one of the machine neither matters nor is left behind.
  const place = ['-port', String(epmdPort), '-address', '127.0.0.1'];
  const epmd = spawn(findProgram(EPMD) ?? 'epmd', place, { stdio: 'ignore' });
  await writeFile(join(folder, 'plugins'), '[rabbitmq_mqtt].');
  await writeFile(join(folder, '.erlang.cookie'), 'sample', { mode: 0o400 });
  const [script = 'rabbitmq-server'] = globSync(SCRIPTS);
  const nodes = mqttPorts.map((port, i) =>
    brokerNode(port, `RabbitMQ ${i}`, [script], () => isReady(port), {
      HOME: folder,
      ERL_EPMD_PORT: String(epmdPort),
      RABBITMQ_NODENAME: nameOf(i),
      RABBITMQ_DIST_PORT: String(ports[i]),
      RABBITMQ_CONFIG_FILE: files[i],
      RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'plugins'),
      RABBITMQ_MNESIA_BASE: join(folder, `data-${i}`),
      RABBITMQ_LOG_BASE: folder,
      RABBITMQ_LOGS: '-',
      RABBITMQ_PID_FILE: join(folder, `pid-${i}`),
      RABBITMQ_CONF_ENV_FILE: '/dev/null',
      RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '-start_epmd false +S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none',
    }),
  );
  const close = async () => {
    await Promise.all(nodes.map((node) => node.signal('SIGKILL')));
    const ended = epmd.exitCode === null && epmd.signalCode === null ? once(epmd, 'exit') : undefined;
    epmd.kill('SIGKILL');
    await ended;
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    // The first makes the cluster that the others join.
    await nodes[0]?.start();
    await Promise.all(nodes.slice(1).map((node) => node.start()));
    return { nodes, close };
  } catch (error) {
    await close();
    throw error;
  }
}
