import { BoxMachine } from './box-machine.ts';
import type { GatewayDisk } from './gateway-disk.ts';
import { checkLedger } from './ledger.ts';
import type { Weather } from './network.ts';
import { isGuest, settle } from './quiescence.ts';
import { type Side, World } from './world.ts';

export interface SimulationFigures {
  seed: number;
  steps: number;
  virtualSeconds: number;
  payments: number;
  /** How often each fault happened and each action was answered how. */
  counts: Record<string, number>;
}

const HOUR_MS = 3_600_000;
/** How long faults go on before a world has to come to rest. */
const CHAOS_MS = [20_000, 120_000] as const;
/** In one world orders expire while faults go on, in the next they are still on the screens when it has come to rest. */
const LIFETIMES_SECONDS = [90, 12] as const;

/** A world full of faults for `steps` steps, which comes to rest and is checked again and again. Throws a Violation. */
export async function simulate(seed: number, steps: number, disk: GatewayDisk): Promise<SimulationFigures> {
  const lifetimeSeconds = LIFETIMES_SECONDS[seed % 2 === 0 ? 0 : 1];
  const world = new World({ seed, disk, boxes: 3, lifetimeSeconds });
  const [first] = world.boxes;
  if (first === undefined) throw new Error('a world without boxes');
  world.boxes.push(new BoxMachine(world, `${first.name} second device`, first.identity));
  const chaos = new Chaos(world);
  world.gateway.start();
  for (const box of world.boxes) if (!isGuest(box)) box.start();
  let payments = 0;
  while (world.steps < steps) {
    chaos.begin();
    await world.runFor(world.chance.timeMs(...CHAOS_MS));
    chaos.end();
    await settle(world);
    payments = checkLedger(world);
    if (world.chance.chance(0.3)) {
      await world.runFor(lifetimeSeconds * 1000 + 1000);
      for (const box of world.boxes) {
        if (world.oracle.sceneOn(box)?.kind === 'payment') throw world.violation(`${box.name} shows a QR for ever`);
      }
    }
  }
  const counts = Object.fromEntries([...world.counts].sort(([a], [b]) => (a < b ? -1 : 1)));
  return { seed, steps: world.steps, virtualSeconds: Math.round(world.clock.monotonicMs() / 1000), payments, counts };
}

/** Everything that goes wrong and everything that people do, at times of chance. */
class Chaos {
  readonly #world: World;
  #goesOn = false;
  #age = 0;

  constructor(world: World) {
    this.#world = world;
  }

  begin(): void {
    const { network, chance, disk, partner } = this.#world;
    this.#goesOn = true;
    this.#age += 1;
    network.weather = this.#weather();
    disk.latencyMs = () => (chance.chance(0.05) ? chance.timeMs(0.25, 3) : 0);
    const isPoorDisk = chance.chance(0.2);
    disk.fails = () => {
      const fails = isPoorDisk && chance.chance(0.02);
      if (fails) this.#world.count('store write failed');
      return fails;
    };
    partner.manner = () =>
      chance.weighted([
        [6, 'processes'],
        [2, 'fails'],
        [1, 'hangs'],
        [1, 'is away'],
      ]);
    this.#world.onWrite = (side, when) => {
      if (!chance.chance(0.002)) return;
      this.#world.count(side === this.#world.gateway ? `gateway killed ${when} a write` : `box killed ${when} a write`);
      this.#kill(side);
    };
    this.#later(this.#age);
  }

  end(): void {
    this.#goesOn = false;
    this.#world.onWrite = undefined;
    for (const box of this.#world.boxes) if (isGuest(box)) box.kill();
  }

  #later(age: number): void {
    const { clock, chance } = this.#world;
    clock.after(chance.timeMs(1, chance.pick([30, 300, 3000])), () => {
      if (!this.#goesOn || age !== this.#age) return;
      this.#happen();
      this.#later(age);
    });
  }

  #weather(): Weather {
    const { chance } = this.#world;
    const rough = chance.chance(0.7);
    return {
      delayMs: chance.pick([
        [0.25, 4],
        [0.25, 40],
        [5, 800],
      ] as const),
      drop: rough ? chance.pick([0, 0.01, 0.1]) : 0,
      duplicate: rough ? chance.pick([0, 0.02, 0.2]) : 0,
      reorder: rough ? chance.pick([0, 0.02, 0.2]) : 0,
      noticeMs: chance.pick([
        [1, 50],
        [1, 30_000],
      ] as const),
    };
  }

  #kill(side: Side, end = () => side.kill(), forMs = [50, 1000, 20_000]): void {
    const { clock, chance } = this.#world;
    const age = this.#age;
    end();
    clock.after(chance.timeMs(1, chance.pick(forMs)), () => {
      if (this.#goesOn && age === this.#age) side.start();
    });
  }

  #happen(): void {
    const { chance } = this.#world;
    const what = chance.weighted([
      [30, 'push'],
      [14, 'push again'],
      [24, 'pay'],
      [4, 'pay without order'],
      [3, 'pay by order'],
      [6, 'cancel'],
      [4, 'press'],
      [2, 'resend'],
      [4, 'cut'],
      [2, 'partition'],
      [2, 'kill box'],
      [2, 'power cut'],
      [1, 'kill gateway'],
      [1, 'second device'],
      [2, 'display'],
      [2, 'disk'],
      [1, 'calendar'],
    ]);
    this.#world.trace('action', what);
    if (
      [
        'cut',
        'partition',
        'kill box',
        'power cut',
        'kill gateway',
        'second device',
        'display',
        'disk',
        'calendar',
      ].includes(what)
    ) {
      this.#fault(what);
    } else {
      this.#act(what);
    }
  }

  #act(what: string): void {
    const { chance, shop, boxes, disk, gateway } = this.#world;
    const box = chance.pick(boxes);
    const { terminalCode } = box.identity;
    const order = shop.orders.length === 0 ? undefined : chance.pick(shop.orders.slice(-4));
    if (what === 'push') {
      const fresh = shop.newOrder(terminalCode);
      if (chance.chance(0.3)) void shop.generate(fresh).then(() => shop.push(fresh, terminalCode));
      else void shop.push(fresh, terminalCode);
    } else if (what === 'pay without order') {
      const accountOf = { amount: 1000, content: `FREE${shop.asked.size}`, bankAccount: '0123456789' };
      void shop.pay(accountOf);
    } else if (what === 'press') {
      box.press(chance.pick(['dismiss', 'history', 'repeat']));
    } else if (what === 'resend') {
      const [callback] = disk.rows<{ id: string }>('SELECT id FROM callbacks ORDER BY seq DESC LIMIT 1');
      if (callback !== undefined) void gateway.resend(callback.id).catch(() => undefined);
    } else if (order !== undefined) {
      if (what === 'push again') void shop.push(order, terminalCode);
      else if (what === 'pay') void shop.pay(order);
      else if (what === 'pay by order') void shop.payOrder(order);
      else void shop.cancel(order);
    }
  }

  #fault(what: string): void {
    const { chance, boxes, network, clock, gateway } = this.#world;
    const box = chance.pick(boxes);
    const { terminalCode } = box.identity;
    const forMs = chance.timeMs(10, chance.pick([500, 8_000, 40_000]));
    const age = this.#age;
    const over = (mend: () => void) => clock.after(forMs, () => this.#goesOn && age === this.#age && mend());
    this.#world.count(what);
    if (what === 'cut') network.cut({ terminalCode });
    else if (what === 'partition') {
      network.partition(terminalCode);
      over(() => network.heal(terminalCode));
    } else if (what === 'kill box') this.#kill(box);
    else if (what === 'power cut') {
      this.#kill(box, () => box.cutPower(), [1_000, 10_000, 60_000]);
      // The router of the shop needs longer than the box.
      network.partition(terminalCode);
      clock.after(chance.timeMs(1_000, 90_000), () => this.#goesOn && age === this.#age && network.heal(terminalCode));
    } else if (what === 'kill gateway') this.#kill(gateway);
    else if (what === 'second device') {
      const guest = boxes.find(isGuest);
      if (guest?.isOn) guest.kill();
      else guest?.start();
    } else if (what === 'display') {
      box.panel.fail();
      over(() => {
        box.panel.failing = false;
      });
    } else if (what === 'disk') {
      box.disk.failing = true;
      over(() => {
        box.disk.failing = false;
      });
    } else {
      const hours = chance.whole(-5, 5);
      chance.pick([gateway.calendar, box.calendar]).offsetMs = hours * HOUR_MS;
    }
  }
}
