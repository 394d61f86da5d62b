import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '../../src/bench/free-ports.ts';
import { GATEWAY_LOGIN } from '../../src/provision/brokers.ts';
import { RABBITMQ_DEFINITIONS, rabbitmqConfig, withRabbitmqUsers } from '../../src/provision/rabbitmq.ts';
import { type BrokerCluster, brokerNode } from './broker-node.ts';
import { findProgram, type Program } from './programs.ts';

/** The script itself: the command of the package changes to its own user and folders. */
const SCRIPTS = '/usr/lib/rabbitmq/lib/*/sbin/rabbitmq-server';
const EPMD: Program = { command: 'epmd', debianPackage: 'erlang-base' };

/** Starts RabbitMQ nodes in one cluster, with the files that provision writes but for TLS. The caller closes them. */
export async function startRabbitmq(logins: Readonly<Record<string, string>>, count = 3): Promise<BrokerCluster> {
  const login = { username: GATEWAY_LOGIN, password: logins[GATEWAY_LOGIN] ?? '' };
  const folder = await mkdtemp(join(tmpdir(), 'paybox-rabbitmq-'));
  const [epmdPort = 0, ...ports] = await freePorts(1 + 2 * count);
  const names = Array.from({ length: count }, (_, i) => `node${i}@localhost`);
  // Of our own, so that the one of the machine neither matters nor is left behind.
  const epmd = spawn(findProgram(EPMD) ?? 'epmd', ['-port', String(epmdPort), '-address', '127.0.0.1'], {
    stdio: 'ignore',
  });
  await mkdir(join(folder, 'rabbitmq'));
  await writeFile(
    join(folder, 'rabbitmq/definitions.json'),
    withRabbitmqUsers(RABBITMQ_DEFINITIONS, logins, 'definitions'),
  );
  await writeFile(join(folder, 'plugins'), '[rabbitmq_mqtt].');
  await writeFile(join(folder, '.erlang.cookie'), 'sample', { mode: 0o400 });
  const [script = 'rabbitmq-server'] = globSync(SCRIPTS);
  const nodes = await Promise.all(
    names.map(async (name, i) => {
      const own = join(folder, `node-${i}`);
      await mkdir(own);
      const [mqtt = 0, dist] = ports.slice(2 * i);
      const made = rabbitmqConfig(folder, mqtt, true)
        .replace('mqtt.listeners.tcp = none', `mqtt.listeners.tcp.default = 127.0.0.1:${mqtt}`)
        .replaceAll(/^(mqtt\.listeners\.ssl|ssl_|mqtt\.ssl_).*\n/gm, '');
      // The first joins nobody: it need not look for the others.
      const peers = names
        .slice(0, i === 0 ? 1 : count)
        .map((it, at) => `cluster_formation.classic_config.nodes.${at + 1} = ${it}`);
      const formation = ['cluster_formation.peer_discovery_backend = classic_config', ...peers];
      await writeFile(join(own, 'rabbitmq.conf'), `${made}${formation.join('\n')}\nlog.console.level = warning\n`);
      return brokerNode(mqtt, `RabbitMQ ${i}`, [script], login, {
        HOME: folder,
        ERL_EPMD_PORT: String(epmdPort),
        RABBITMQ_NODENAME: name,
        RABBITMQ_DIST_PORT: String(dist),
        RABBITMQ_CONFIG_FILE: join(own, 'rabbitmq.conf'),
        RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'plugins'),
        RABBITMQ_MNESIA_BASE: join(own, 'data'),
        RABBITMQ_LOG_BASE: own,
        RABBITMQ_LOGS: '-',
        RABBITMQ_PID_FILE: join(own, 'pid'),
        RABBITMQ_CONF_ENV_FILE: '/dev/null',
        RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '-start_epmd false +S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none',
      });
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
