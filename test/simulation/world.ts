import { parseGatewayConfig } from '../../src/gateway/config/config.ts';
import { turn, VirtualClock } from '../../src/lib/virtual-clock.ts';
import { BoxMachine } from './box-machine.ts';
import { type Chance, chanceOf } from './chance.ts';
import type { GatewayDisk } from './gateway-disk.ts';
import { GatewayMachine } from './gateway-machine.ts';
import { Network } from './network.ts';
import { Oracle } from './oracle.ts';
import { Partner } from './partner.ts';
import { Shop } from './shop.ts';

/** What a disk calls around each write, so that its program can be killed right there. */
export interface WriteHooks {
  beforeWrite(): void;
  afterWrite(): void;
}

/** A side that has a disk. */
export type Side = GatewayMachine | BoxMachine;
export type WriteObserver = (side: Side, when: 'before' | 'after') => void;

export interface WorldOptions {
  seed: number;
  disk: GatewayDisk;
  boxes: number;
  lifetimeSeconds: number;
}

export const ACCOUNTS = [
  { bankAccount: '0123456789', bankCode: 'MB', userBankName: 'NGUYEN VAN A' },
  { bankAccount: 'SHOP2ACC', bankCode: 'VCB', userBankName: 'TRAN THI B' },
] as const;

/** Retries go on for longer than any partner of a simulation is away. */
const RETRY_WAITS_MS = [1000, 2000, 3000, 4000, 5000, ...Array.from({ length: 40 }, () => 15_000)];
/** Lines that tell how a violation came about. */
const TRACE_MAX = 200;

/** Something that must never happen did; the message has the seed and what came before. */
export class Violation extends Error {}

/** Boxes, a gateway and a partner with one time and one chance for all. */
export class World {
  readonly seed: number;
  readonly clock = new VirtualClock();
  readonly chance: Chance;
  readonly oracle: Oracle;
  readonly network: Network;
  readonly partner: Partner;
  readonly gateway: GatewayMachine;
  readonly shop: Shop;
  readonly disk: GatewayDisk;
  /** The devices; two of them may have the same identity. */
  readonly boxes: BoxMachine[];
  readonly counts = new Map<string, number>();
  steps = 0;
  /** Told of every write; it may kill the side that writes. */
  onWrite: WriteObserver | undefined;
  readonly #trace: unknown[][] = [];

  constructor({ seed, disk, boxes, lifetimeSeconds }: WorldOptions) {
    disk.wipe();
    this.seed = seed;
    this.disk = disk;
    this.chance = chanceOf(seed);
    const config = configOf(boxes, lifetimeSeconds);
    this.oracle = new Oracle(
      () => this.clock.monotonicMs(),
      (terminalCode) => config.boxes.find((box) => box.terminalCode === terminalCode)?.account,
    );
    this.network = new Network(this.chance.chance(0.5) ? 'mqtt' : 'http', {
      world: this.clock,
      chance: this.chance,
      count: (what) => this.count(what),
      onDown: (terminalCode, message) => {
        this.trace('gateway says', terminalCode, message);
        if (message.type === 'show') this.oracle.pushed(terminalCode, message);
      },
      onUp: (terminalCode, message) => {
        this.trace(terminalCode, 'says', message);
        const disks = this.boxes.filter((box) => box.identity.terminalCode === terminalCode).map((box) => box.disk);
        if (message.type === 'paid' && message.recorded) this.oracle.reports(message.transactionId, disks);
      },
    });
    this.partner = new Partner(this);
    this.gateway = new GatewayMachine(this, disk, config);
    disk.hooks = this.hooksOf(this.gateway);
    this.shop = new Shop(this, config);
    this.boxes = config.boxes.map(
      (box) => new BoxMachine(this, box.terminalCode, { ...box, secret: box.secret ?? '' }),
    );
  }

  hooksOf(side: Side): WriteHooks {
    return {
      beforeWrite: () => this.onWrite?.(side, 'before'),
      afterWrite: () => this.onWrite?.(side, 'after'),
    };
  }

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  readonly trace = (...words: unknown[]): void => {
    this.#trace.push([this.clock.monotonicMs(), ...words]);
    if (this.#trace.length > TRACE_MAX) this.#trace.shift();
  };

  /** Everything that is due now, then the next thing that time brings, if that is not after `untilMs`. */
  async step(untilMs = Number.POSITIVE_INFINITY): Promise<boolean> {
    await turn();
    for (const box of this.boxes) this.oracle.check(box);
    this.assert();
    this.steps += 1;
    return this.clock.step(untilMs);
  }

  async runFor(ms: number): Promise<void> {
    const untilMs = this.clock.monotonicMs() + ms;
    this.clock.after(ms, () => undefined);
    while (await this.step(untilMs));
  }

  /** Whether it came to that within `ms` of virtual time. */
  async runUntil(isSo: () => boolean, ms: number): Promise<boolean> {
    const untilMs = this.clock.monotonicMs() + ms;
    while (this.clock.monotonicMs() < untilMs) {
      await this.runFor(500);
      if (isSo()) return true;
    }
    return false;
  }

  assert(): void {
    const [violation] = this.oracle.violations;
    if (violation !== undefined) throw this.violation(violation);
  }

  violation(what: string): Violation {
    const lines = this.#trace.map(([ms, ...words]) => `${Number(ms).toFixed(2)} ${words.map(inWords).join(' ')}`);
    return new Violation([...lines, `seed ${this.seed}, step ${this.steps}: ${what}`].join('\n'));
  }
}

function configOf(boxes: number, lifetimeSeconds: number) {
  return parseGatewayConfig(
    {
      dataDir: 'none',
      mqtt: null,
      qrLifetimeSeconds: lifetimeSeconds,
      callbackRetryWaitsMs: RETRY_WAITS_MS,
      accounts: ACCOUNTS,
      partners: [
        {
          username: 'demo',
          password: 'demo-secret',
          accounts: ACCOUNTS.map((it) => it.bankAccount),
          callback: { url: 'http://partner.invalid/bank/api/transaction-sync' },
        },
      ],
      boxes: Array.from({ length: boxes }, (_, index) => ({
        terminalCode: `VVB00000${index + 1}`,
        serialNumber: `VVB90000${index + 1}`,
        secret: 'Simulated-secret-of-every-box',
        account: ACCOUNTS[index === 2 ? 1 : 0].bankAccount,
      })),
    },
    'simulation',
  );
}

function inWords(word: unknown): string {
  return typeof word === 'string' ? word : JSON.stringify(word);
}
