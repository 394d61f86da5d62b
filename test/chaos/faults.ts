import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Timeline } from '../kill/timeline.ts';
import type { World } from '../kill/world.ts';
import { fillDisk } from '../support/disk.ts';
import type { ServerDisks } from '../support/postgres.ts';
import { CONNECTIONS_MAX, type Database, GATEWAY, type Server } from './database.ts';
import type { FaultKind, PlannedFault } from './plan.ts';
import { signalAll } from './processes.ts';

/** Ends a fault. It is tried again until it succeeds: a server may hang, or be away, for another fault's sake. */
type Lift = () => Promise<unknown>;

export interface FaultPlace {
  database: Database;
  world: World;
  timeline: Timeline;
  /** Told how long a gateway took to end by SIGTERM. */
  onStopped: (tookMs: number) => void;
  /** Told when the standby has become the primary. */
  onFailover: () => void;
}

/** A time in which a fault was there, in milliseconds of the monotonic clock. */
export interface FaultSpan {
  kind: FaultKind;
  fromMs: number;
  /** When it was there in full, and when its end began. */
  thereMs: number;
  endsMs: number;
  toMs: number;
  /** Whether a statement that it makes fail has certainly changed nothing. */
  isClear: boolean;
}

const RETRY_MS = 100;
const LIFT_MS_MAX = 90_000;
/** A gateway ends within 2 s of SIGTERM, whatever its database does; the machine has much else to do. */
const STOP_MS_MAX = 5_000;
const LAG_MS = 1_000;
const TERMINATE = `select pg_terminate_backend(pid) from pg_stat_activity where usename = '${GATEWAY}' and datname = '${GATEWAY}'`;
const BALLAST = 'ballast';
/** Statements that fail for this, and no connection with them. */
const CLEAR: readonly FaultKind[] = [
  'tablespace full',
  'data disk full',
  'insert revoked',
  'update revoked',
  'read-only',
];

/** A server that failed over keeps these: they are ended at the one that took over. */
export const KEPT_BY_SERVER: readonly FaultKind[] = ['read-only', 'insert revoked', 'update revoked', 'login revoked'];

/** Holds a fault for its time, and settles once it is over. */
export async function inflict(fault: PlannedFault, place: FaultPlace, spans: FaultSpan[]): Promise<void> {
  const { kind, holdMs, picks } = fault;
  place.timeline.add(`${kind} …`);
  const never = Number.POSITIVE_INFINITY;
  const times = { fromMs: performance.now(), thereMs: never, endsMs: never, toMs: never };
  const span: FaultSpan = { kind, ...times, isClear: isClear(fault) };
  spans.push(span);
  const lifts: Lift[] = [];
  try {
    await BEGIN[kind](place, lifts, picks, holdMs);
    span.thereMs = performance.now();
    place.timeline.add(`${kind}: it is there`);
    if (kind !== 'failover') await delay(holdMs);
  } catch (error) {
    // A server that another fault has stopped takes no statement.
    place.timeline.add(`${kind}: not begun: ${String(error)}`);
  } finally {
    span.endsMs = performance.now();
    for (const lift of lifts.toReversed()) await retried(kind, lift);
    span.toMs = performance.now();
    place.timeline.add(`${kind}: over`);
  }
}

function isClear({ kind, picks: [first, second] }: PlannedFault): boolean {
  if (kind === 'update revoked') return updateTable(first) !== 'settings';
  return CLEAR.includes(kind) && (kind !== 'read-only' || isByServer(second));
}

async function retried(kind: FaultKind, lift: Lift): Promise<void> {
  const deadlineMs = performance.now() + LIFT_MS_MAX;
  for (;;) {
    try {
      await lift();
      return;
    } catch (error) {
      if (performance.now() > deadlineMs)
        throw new Error(`${kind} cannot be ended: ${String(error)}`, { cause: error });
      await delay(RETRY_MS);
    }
  }
}

type Begin = (place: FaultPlace, lifts: Lift[], picks: readonly [number, number], holdMs: number) => Promise<void>;

const BEGIN: Readonly<Record<FaultKind, Begin>> = {
  failover,
  'server restarted': async ({ database }, lifts, [pick]) => {
    const server = database.primary;
    lifts.push(async () => server.up());
    await server.down(oneOf(['SIGINT', 'SIGQUIT', 'SIGKILL'], pick));
  },
  // The server ends all its backends then, and replays its log.
  'backend crashed': async ({ database }, _lifts, [pick]) => {
    const { backends } = database;
    const victim = backends[Math.floor(pick * backends.length)];
    if (victim !== undefined) signalAll([victim.pid], 'SIGKILL');
  },
  'standby down': async ({ database }, lifts, [pick]) => {
    const { standby } = database;
    lifts.push(async () => standby.up());
    await standby.down(oneOf(['SIGINT', 'SIGQUIT', 'SIGKILL'], pick));
  },
  'log disk full': async ({ database }, lifts) => {
    const { disks } = database.primary.postgres;
    fill(disks, 'wal', lifts);
    // Files of the log that are there already are used up first.
    for (let files = 0; files < 20; files += 1) {
      const isDone = await database.run("select pg_logical_emit_message(false, 'test', 'x'), pg_switch_wal()").then(
        () => false,
        () => true,
      );
      if (isDone) return;
    }
  },
  'data disk full': async ({ database }, lifts) => fill(database.primary.postgres.disks, 'data', lifts),
  'tablespace full': async ({ database }, lifts) => fill(database.primary.postgres.disks, 'space', lifts),
  'connections taken': takeConnections,
  'insert revoked': async ({ database }, lifts, [pick]) => {
    const table = oneOf(['payments', 'callbacks', 'notices', 'credits'], pick);
    await revoke(database, `insert on ${table}`, lifts);
  },
  'update revoked': async ({ database }, lifts, [pick]) => revoke(database, `update on ${updateTable(pick)}`, lifts),
  'login revoked': async ({ database }, lifts, [pick]) => {
    if (pick < 1 / 2) await revoke(database, `connect on database ${GATEWAY}`, lifts, 'public, ');
    else {
      lifts.push(() => database.run(`alter role ${GATEWAY} login`));
      await database.run(`alter role ${GATEWAY} nologin`);
    }
    await database.run(TERMINATE);
  },
  'read-only': readOnly,
  'table locked': async ({ database }, lifts, [pick]) => {
    const client = await database.client();
    lifts.push(async () => void client.end().catch(() => undefined));
    await client.query("begin; set local lock_timeout = '5s'");
    await client.query(`lock table ${oneOf(['payments', 'callbacks', 'ledger', 'settings'], pick)}`);
  },
  'writer hangs': async ({ database }, lifts, [pick]) => {
    const { backends } = database;
    const one = backends[Math.floor(pick * backends.length)];
    hang(one === undefined ? [] : [one.pid], lifts);
  },
  'backends hang': async ({ database }, lifts) => hang(pidsOf(database.backends), lifts),
  'server hangs': async ({ database: { primary } }, lifts) => {
    const pids = primary.signal('SIGSTOP');
    lifts.push(async () => signalAll(pids, 'SIGCONT'));
  },
  'log writers hang': async ({ database }, lifts) => hangTitled(database.primary, /checkpointer|walwriter/, lifts),
  'replication hangs': async ({ database: { primary, standby } }, lifts, [pick]) =>
    pick < 1 / 2 ? hangTitled(primary, /walsender/, lifts) : hangTitled(standby, /walreceiver|startup/, lifts),
  'network silent': async ({ database: { proxy } }, lifts, [pick]) => {
    lifts.push(async () => proxy.resume());
    proxy.stall(pick < 1 / 3 ? ['up'] : pick < 2 / 3 ? ['down'] : ['up', 'down']);
  },
  'network slow': async ({ database: { proxy } }, lifts, [pick]) => {
    lifts.push(async () => proxy.delay(0));
    proxy.delay(50 + pick * 450, 40);
  },
  'network cut': async ({ database: { proxy } }, _lifts, [pick]) => {
    if (pick < 1 / 2) proxy.cut();
    else proxy.abandon();
  },
  'backends ended': async ({ database }, _lifts, [pick], holdMs) => {
    const times = 1 + Math.floor(pick * 3);
    for (let n = 0; n < times; n += 1) {
      await database.run(TERMINATE);
      await delay(holdMs / times / 2);
    }
  },
  'gateway killed': async ({ world }, lifts) => {
    const gateway = world.programs.get('gateway');
    lifts.push(async () => gateway?.start());
    await gateway?.kill('SIGKILL');
  },
  'gateway stopped': async ({ world, onStopped, timeline }, lifts) => {
    const gateway = world.programs.get('gateway');
    lifts.push(async () => gateway?.start());
    const startedMs = performance.now();
    const ended = gateway?.kill('SIGTERM').then(() => true);
    if (!(await Promise.race([ended, delay(STOP_MS_MAX, false, { ref: false })]))) {
      await gateway?.kill('SIGKILL');
      throw new Error(`the gateway did not end within ${STOP_MS_MAX} ms of SIGTERM`);
    }
    const tookMs = performance.now() - startedMs;
    timeline.add(`the gateway ended ${Math.round(tookMs)} ms after SIGTERM`);
    onStopped(tookMs);
  },
};

/** The standby takes over: after a crash of the primary, or while that lives on, alone; perhaps it lags behind. */
async function failover(
  { database, onFailover, timeline }: FaultPlace,
  lifts: Lift[],
  picks: readonly [number, number],
) {
  const [how, lags] = picks;
  const { primary, standby } = database;
  const isLagging = lags < 2 / 3;
  if (isLagging) {
    await standby.postgres.disconnect();
    timeline.add('the standby receives nothing more');
    await delay(LAG_MS);
  }
  if (how < 2 / 3) await primary.down(how < 1 / 3 ? 'SIGKILL' : 'SIGQUIT');
  lifts.push(async () => {
    if (database.primary !== primary) return;
    await database.failOver();
    onFailover();
    timeline.add('the standby is the primary');
  });
}

async function takeConnections({ database, timeline }: FaultPlace, lifts: Lift[]): Promise<void> {
  const taken: { end(): Promise<void> }[] = [];
  let isOver = false;
  lifts.push(async () => {
    isOver = true;
    for (const client of taken.splice(0)) client.end().catch(() => undefined);
  });
  const take = async () => {
    const client = await database.idler();
    if (isOver) client.end().catch(() => undefined);
    else taken.push(client);
  };
  for (let round = 0; round < 10; round += 1) {
    await Promise.allSettled(Array.from({ length: CONNECTIONS_MAX }, take));
    const { backends } = database;
    // Those of the test have the same user.
    const others = backends.length;
    if (others === 0) break;
    signalAll(pidsOf(backends), 'SIGTERM');
    await Promise.allSettled(Array.from({ length: others }, take));
  }
  timeline.add(`${taken.length} connections are taken`);
}

async function readOnly({ database }: FaultPlace, lifts: Lift[], [, pick]: readonly [number, number]): Promise<void> {
  const setting = 'default_transaction_read_only';
  const server = database.primary;
  if (isByServer(pick)) {
    lifts.push(async () => {
      // It may be gone, and is used no more.
      if (server !== database.primary) return;
      await database.run(`alter system reset ${setting}`, server);
      await database.run('select pg_reload_conf()', server);
    });
    await database.run(`alter system set ${setting} = on`);
    await database.run('select pg_reload_conf()');
    return;
  }
  lifts.push(async () => {
    await database.run(`alter role ${GATEWAY} reset ${setting}`);
    await database.run(TERMINATE);
  });
  await database.run(`alter role ${GATEWAY} set ${setting} = on`);
  await database.run(TERMINATE);
}

const isByServer = (pick: number) => pick < 1 / 2;
const updateTable = (pick: number) => oneOf(['ledger', 'orders', 'callbacks', 'settings'], pick);

async function revoke(database: Database, right: string, lifts: Lift[], also = ''): Promise<void> {
  lifts.push(() => database.run(`grant ${right} to ${also}${GATEWAY}`));
  await database.run(`revoke ${right} from ${also}${GATEWAY}`);
}

function fill(disks: ServerDisks | undefined, which: keyof ServerDisks, lifts: Lift[]): void {
  if (disks === undefined) throw new Error('the server has no disks of its own');
  const file = join(disks[which], BALLAST);
  lifts.push(async () => rmSync(file, { force: true }));
  fillDisk(file);
}

function hang(pids: readonly number[], lifts: Lift[]): void {
  lifts.push(async () => signalAll(pids, 'SIGCONT'));
  signalAll(pids, 'SIGSTOP');
}

function hangTitled(server: Server, title: RegExp, lifts: Lift[]): void {
  hang(
    server.children.flatMap((it) => (title.test(it.title) ? [it.pid] : [])),
    lifts,
  );
}

function pidsOf(processes: readonly { pid: number }[]): number[] {
  return processes.map(({ pid }) => pid);
}

function oneOf<T>(all: readonly [T, ...T[]], pick: number): T {
  return all[Math.floor(pick * all.length)] ?? all[0];
}
