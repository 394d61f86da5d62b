import { chanceOf } from './chance.ts';
import type { GatewayDisk } from './gateway-disk.ts';
import { checkLedger } from './ledger.ts';
import { settle } from './quiescence.ts';
import { type Side, Violation, World } from './world.ts';

/** Where a program is stopped: at its nth write of the session, right before or right after that. */
export interface CrashPoint {
  side: string;
  write: number;
  when: 'before' | 'after';
}

export interface TwinFigures {
  sessions: number;
  /** Journal appends and store commits of the sessions. */
  writes: number;
  /** Reruns, two for each write. */
  reruns: number;
  payments: number;
}

const LIFETIME_SECONDS = 12;
/** The program is started again after this. */
const DOWN_MS = 300;

/** Plays a session and then, for each write of it, two that are stopped there. */
async function playTwins(seed: number, disk: GatewayDisk, figures: TwinFigures): Promise<void> {
  const { writes, payments } = await play(seed, disk, undefined);
  figures.sessions += 1;
  figures.writes += writes.length;
  figures.payments += payments;
  for (const { side, write } of writes) {
    for (const when of ['before', 'after'] as const) {
      figures.payments += (await play(seed, disk, { side, write, when })).payments;
      figures.reruns += 1;
    }
  }
}

/** One session, stopped at one point or at none; its writes and how many payments were checked. */
export async function play(
  seed: number,
  disk: GatewayDisk,
  point: CrashPoint | undefined,
): Promise<{ writes: Omit<CrashPoint, 'when'>[]; payments: number }> {
  const world = new World({ seed, disk, boxes: 1 + (seed % 2), lifetimeSeconds: LIFETIME_SECONDS });
  const writes: Omit<CrashPoint, 'when'>[] = [];
  const counts = new Map<string, number>();
  let reached = false;
  world.onWrite = (side, when) => {
    const name = side === world.gateway ? 'gateway' : world.boxes.find((box) => box === side)?.name;
    if (name === undefined || reached) return;
    const write = (counts.get(name) ?? 0) + (when === 'before' ? 1 : 0);
    counts.set(name, write);
    if (when === 'before' && point === undefined) writes.push({ side: name, write });
    if (point?.side !== name || point.write !== write || point.when !== when) return;
    reached = true;
    stop(world, side);
  };
  try {
    await script(world);
    await settle(world);
    const payments = checkLedger(world);
    if (point !== undefined && !reached) throw world.violation('the point of the crash was not reached again');
    return { writes, payments };
  } catch (error) {
    if (point === undefined) throw error;
    const { side, write, when } = point;
    throw new Violation(`${String(error)}\nstopped: ${side} ${when} its write ${write}`);
  }
}

function stop(world: World, side: Side): void {
  world.trace('killed', side === world.gateway ? 'gateway' : 'box');
  side.kill();
  world.clock.after(DOWN_MS, () => side.start());
}

/** A few actions of a shop, its customers and the people at the box, some time apart. */
async function script(world: World): Promise<void> {
  const { boxes, gateway, shop } = world;
  // Of its own, so that a crash changes what follows from it and not what people do.
  const chance = chanceOf(-world.seed - 1);
  gateway.start();
  for (const box of boxes) box.start();
  await world.runFor(400);
  const actions = 3 + chance.below(6);
  for (let i = 0; i < actions; i += 1) {
    const box = chance.pick(boxes);
    const order = shop.orders.length === 0 ? undefined : chance.pick(shop.orders.slice(-2));
    const action = chance.weighted([
      [5, 'push'],
      [order === undefined ? 0 : 4, 'pay'],
      [1, 'pay without order'],
      [order === undefined ? 0 : 1, 'push again'],
      [order === undefined ? 0 : 1, 'cancel'],
      [1, 'dismiss'],
    ]);
    world.trace('action', action);
    if (action === 'push') void shop.push(shop.newOrder(box.identity.terminalCode), box.identity.terminalCode);
    else if (action === 'dismiss') box.press('dismiss');
    else if (action === 'pay without order') {
      void shop.pay({ amount: 1000, content: `FREE${i}`, bankAccount: '0123456789' });
    } else if (order !== undefined) {
      if (action === 'pay') void shop.pay(order);
      else if (action === 'cancel') void shop.cancel(order);
      else void shop.push(order, box.identity.terminalCode);
    }
    await world.runFor(chance.pick([1, 20, 150, 900, 4000]));
  }
}

/** Plays `sessions` sessions from `firstSeed` on. Throws a Violation that names the seed. */
export async function run(
  { sessions, firstSeed }: { sessions: number; firstSeed: number },
  disk: GatewayDisk,
): Promise<TwinFigures> {
  const figures = { sessions: 0, writes: 0, reruns: 0, payments: 0 };
  const { stackTraceLimit } = Error;
  // Production aborts what it does not wait for, and each abort would write down where it was.
  Error.stackTraceLimit = 0;
  try {
    for (let seed = firstSeed; seed < firstSeed + sessions; seed += 1) await playTwins(seed, disk, figures);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
  return figures;
}
