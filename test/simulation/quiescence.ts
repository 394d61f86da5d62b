import { view } from '../../src/device/box/view.ts';
import type { Scene } from '../../src/device/scene.ts';
import type { BoxMachine } from './box-machine.ts';
import { FAIR } from './network.ts';
import type { World } from './world.ts';

/**
 * Longer than every retry of production: a redial waits 30 s at most, a reopened display too, a callback 15 s here, and an
 * agent that the late hello of a dead device has superseded asks every 60 s, of which the first may be too early.
 */
const SETTLE_MS = 150_000;

/** For as long is each paid screen shown that is owed, one after the other. */
const PAID_SCREEN_MS = 11_000;

/** Faults stop, and people put everything right: what was cut is plugged in, what was switched off is on. */
export function makePeace({ network, disk, partner, boxes }: World): void {
  network.weather = FAIR;
  disk.fails = () => false;
  disk.latencyMs = () => 0;
  partner.manner = () => 'processes';
  for (const { identity, disk: journal, panel } of boxes) {
    network.heal(identity.terminalCode);
    journal.failing = false;
    panel.failing = false;
  }
}

/** Waits until nothing is owed on either side, each device of an identity by itself; throws what is still owed. */
export async function settle(world: World): Promise<void> {
  makePeace(world);
  const { boxes, gateway } = world;
  gateway.start();
  const guests = boxes.filter((box) => isGuest(box) && box.wasOn);
  if (guests.length > 0) {
    for (const box of boxes) if (!isGuest(box)) box.kill();
    await settleAlone(world, guests);
    for (const guest of guests) {
      guest.kill();
      guest.wasOn = false;
    }
  }
  await settleAlone(
    world,
    boxes.filter((box) => !isGuest(box)),
  );
}

/** A second device with the identity of another. */
export function isGuest({ name, identity }: BoxMachine): boolean {
  return name !== identity.terminalCode;
}

async function settleAlone(world: World, boxes: readonly BoxMachine[]): Promise<void> {
  // Whoever has lost its picture and cannot know it is switched off and on by a person.
  for (const box of boxes) if (box.panel.isDarkUnnoticed) box.kill();
  for (const box of boxes) box.start();
  if (await comesToRest(world, boxes)) return;
  throw world.violation(`still owed: ${debts(world, boxes).join('; ')}`);
}

async function comesToRest(world: World, boxes: readonly BoxMachine[]): Promise<boolean> {
  // Twice, so that the screens have followed.
  let calm = 0;
  let unconfirmedMax = 0;
  const isSettled = () => {
    unconfirmedMax = Math.max(unconfirmedMax, ...boxes.map((box) => box.state?.unconfirmedPayments.length ?? 0));
    calm = debts(world, boxes).length === 0 ? calm + 1 : 0;
    return calm === 2;
  };
  if (await world.runUntil(isSettled, SETTLE_MS)) return true;
  return world.runUntil(isSettled, unconfirmedMax * PAID_SCREEN_MS);
}

/** What the sides still owe each other. */
function debts({ disk, shop, oracle }: World, boxes: readonly BoxMachine[]): string[] {
  const count = (sql: string) => disk.rows<{ n: number }>(`SELECT count(*) AS n FROM ${sql}`)[0]?.n ?? 0;
  const everybody = boxes.length > 0 && !boxes.some(isGuest);
  const told = boxes.map((box) => `'${box.identity.terminalCode}'`).join();
  // A box that is off is told when it comes back.
  const theirs = everybody ? '' : `AND terminal_code IN (${told})`;
  const owed: [string, number][] = [
    ['calls', shop.pending],
    ['callbacks', count("callbacks WHERE status = 'pending'")],
    ['pushes', count(`pushes WHERE status IN ('sent', 'accepted') ${theirs}`)],
    ['withdrawals', count(`pushes WHERE status = 'cancelled' AND ended_at_ms IS NULL ${theirs}`)],
    ['notices', count(`notices WHERE reported_at_ms IS NULL ${theirs}`)],
    ...boxes.map((box): [string, number] => [
      `${box.name} is dark or behind`,
      isDrawn(box, oracle.sceneOn(box)) ? 0 : 1,
    ]),
    ...boxes.flatMap(({ name, state }): [string, number][] => [
      [`${name} is not registered`, state?.connection === 'registered' ? 0 : 1],
      [`${name} unsent`, state?.unsent.length ?? 1],
      [`${name} unconfirmed payments`, state?.unconfirmedPayments.length ?? 1],
    ]),
  ];
  return owed.filter(([, n]) => n > 0).map(([what, n]) => `${n} ${what}`);
}

/** Whether the screen has followed the mind. */
function isDrawn({ state }: BoxMachine, drawn: Scene | undefined): boolean {
  const scene = state === undefined ? undefined : view(state);
  const pushIdOf = (it: Scene | undefined) => (it?.kind === 'payment' ? it.pushId : undefined);
  return drawn !== undefined && drawn.kind === scene?.kind && pushIdOf(drawn) === pushIdOf(scene);
}
