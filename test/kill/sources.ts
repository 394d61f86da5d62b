import { rm, writeFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { reduced } from '../../src/protocol/bank-text.ts';
import { DEMO } from '../benchmarks/fixture.ts';
import { deliver, type Moved, moved, type Post } from '../support/providers.ts';
import { bankText, type Feeds, type Listing, spelledBy, type Teller } from './feeds.ts';
import { observe, qrOnScreen } from './inspection.ts';
import type { WorldKind } from './script.ts';
import { failureOf, playRuns, until } from './seeded-runs.ts';
import type { Order } from './shop.ts';
import { type Awaited, SourcesLedger } from './sources-ledger.ts';
import { type SourcesKill, type SourcesPlan, sourcesPlan, type Transfer, type Webhook } from './sources-plan.ts';
import { Timeline } from './timeline.ts';
import type { World } from './world.ts';

/** The amounts of a world begin here, ten apart: an order may ask for a little more or less. */
const AMOUNT_FIRST = 20_000;
const AMOUNT_STEP = 10;
const OFF = { same: 0, less: -3, more: 3 } as const;
const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
/** A kill waits no longer for its moment: what is sent may itself wait for the end of the kill. */
const MOMENT_TIMEOUT_MS = 500;
const WEBHOOK_TIMEOUT_MS = 20_000;
const CODE = /PB[2-9A-HJ-NP-Z]{7}/;

const EMPTY = {
  payments: 0,
  'webhooks answered': 0,
  'answers lost': 0,
  'posts without an answer': 0,
  'told by several': 0,
  'told by nobody': 0,
  late: 0,
  'gateways killed': 0,
  'of them between storing and answering': 0,
  'agents killed': 0,
  callbacks: 0,
  spoken: 0,
  /** Shown only: the agent died before it could speak. */
  silent: 0,
};
/** What runs with sources came to. */
export type SourcesReport = typeof EMPTY;

/**
 * Plays runs one after the other in one world of programs: orders, and money that sources tell of, or that only their
 * lists have. Throws at the first failure.
 */
export function playSources(
  kind: WorldKind,
  seeds: Iterable<number>,
  onRun?: (report: SourcesReport) => boolean,
): Promise<SourcesReport> {
  return playRuns(kind, seeds, (world, seed) => new SourcesRun(world, seed).play(), EMPTY, onRun);
}

class SourcesRun {
  readonly #world: World;
  readonly #feeds: Feeds;
  readonly #seed: number;
  readonly #plan: SourcesPlan;
  readonly #timeline = new Timeline();
  readonly #report = { ...EMPTY };
  readonly #ledger: SourcesLedger;
  readonly #money: { money: Moved; awaited: Awaited; push: (() => Promise<void>) | undefined }[] = [];
  /** Orders that get less than they ask for. */
  readonly #open: Order[] = [];
  /** Settles when nothing is killed any more: a provider's first wait is longer than a restart. */
  #up: Promise<void> = Promise.resolve();

  constructor(world: World, seed: number) {
    if (world.feeds === undefined) throw new Error('a world without sources');
    this.#world = world;
    this.#feeds = world.feeds;
    this.#seed = seed;
    this.#plan = sourcesPlan(seed);
    this.#ledger = new SourcesLedger(world);
  }

  async play(): Promise<SourcesReport> {
    try {
      if (this.#world.orders === 0) await this.#firstWelcome();
      await this.#world.shop.login();
      this.#world.partner.reactions = Array.from({ length: this.#plan.partnerFails }, () => 'fail');
      for (const transfer of this.#plan.transfers) await this.#prepare(transfer);
      this.#feeds.list({
        sepay: this.#listedAt('sepay'),
        casso: this.#listedAt('casso'),
        payos: this.#listedAt('payos'),
      });
      for (const [index, webhooks] of this.#plan.waves.entries()) {
        await this.#wave(
          webhooks,
          this.#plan.kills.filter(({ wave }) => wave === index),
        );
      }
      // The lists are asked at the start.
      const isTold = this.#plan.transfers.every(({ tellers }) => tellers.length > 0);
      if (!isTold && this.#report['gateways killed'] === 0) await this.#kill(['gateway'], 0);
      await this.#settled();
      await this.#sellFromScreen();
      return { ...this.#report, ...(await this.#ledger.counts()) };
    } catch (error) {
      throw failureOf(this.#world, this.#seed, this.#timeline, error);
    }
  }

  /**
   * A new box does not say what was paid before its first welcome if it may have said it before (clause AGT-11), and a
   * bank tells whole seconds: the money of this run is of the second after the welcome, or later.
   */
  async #firstWelcome(): Promise<void> {
    await until(this.#world, 'the first welcome', async () => {
      const seen = await observe(this.#world);
      return seen?.boxOnlineAtGateway === true && seen.box.online ? undefined : 'the box is not online';
    });
    const welcomedBy = secondOf(Date.now());
    // Not one timer for the rest of the second: it may end a millisecond too early.
    await until(this.#world, 'the next second', () => (secondOf(Date.now()) > welcomedBy ? undefined : 'not yet'));
  }

  /** Makes the order and the money for it. */
  async #prepare(transfer: Transfer): Promise<void> {
    const { tellers, isFresh, ageMinutes, order, asks, atPayos } = transfer;
    this.#world.orders += 1;
    const number = this.#world.orders;
    const amount = AMOUNT_FIRST + number * AMOUNT_STEP;
    const own = `S${this.#seed}N${number}`;
    const asked = { orderId: atPayos ? `${number}` : own, content: own, amount: amount + OFF[asks] };
    const made = order === 'none' ? undefined : await this.#generate(asked);
    const atMs = Date.now() - (isFresh ? 0 : ageMinutes * MINUTE_MS);
    const money = moved({
      id: number,
      reference: `FT26${number}`,
      bankAccount: DEMO.account.bankAccount,
      amount,
      text: bankText(number, made?.content ?? `chuyen tien ${own}`),
      atMs: atMs - (atMs % SECOND_MS),
      orderCode: atPayos ? number : 0,
    });
    const awaited: Awaited = {
      amount,
      text: money.text,
      isFresh,
      orderId: made === undefined ? '' : asked.orderId,
      isOrderPaid: made !== undefined && asks !== 'more',
    };
    this.#ledger.add(awaited);
    const push = async () => void (await this.#world.shop.push(asked, made?.qrCode ?? ''));
    if (order === 'pushed' && asks === 'more') this.#open.push(asked);
    this.#money.push({ money, awaited, push: order === 'pushed' ? push : undefined });
    this.#report.payments += 1;
    if (tellers.length === 0) this.#report['told by nobody'] += 1;
    if (new Set(tellers).size > 1) this.#report['told by several'] += 1;
    if (!isFresh) this.#report.late += 1;
  }

  async #generate(asked: Order) {
    const answer = await this.#world.shop.generate(asked);
    if (answer.kind !== 'answered' || !answer.ok) throw new Error(`no order: ${JSON.stringify(answer)}`);
    return { content: String(answer.body.content), qrCode: String(answer.body.qrCode) };
  }

  #listedAt(name: Listing): Moved[] {
    return this.#plan.transfers.flatMap(({ kind, atPayos }, index) => {
      const isThere = name === 'payos' ? atPayos : kind === name || kind === 'mixed';
      return isThere ? (this.#money[index]?.money ?? []) : [];
    });
  }

  /** Sends the webhooks at once, kills in between, and settles once every webhook is answered. */
  async #wave(webhooks: readonly Webhook[], kills: readonly SourcesKill[]): Promise<void> {
    for (const { transfer } of webhooks) {
      const it = this.#money[transfer];
      await it?.push?.();
      if (it !== undefined) it.push = undefined;
    }
    const answered = Promise.withResolvers<void>();
    const up = Promise.withResolvers<void>();
    if (kills.length > 0) this.#up = up.promise;
    const [first] = kills;
    if (first?.at === 'stored') await writeFile(this.#world.dieFile, '');
    const sending = Promise.all(webhooks.map((it) => this.#tell(it, answered.resolve)));
    const sent = sending.then(
      () => undefined,
      () => undefined,
    );
    for (const kill of kills) {
      if (kill !== first && kill.at === 'stored') await writeFile(this.#world.dieFile, '');
      await this.#harm(kill, answered.promise, sent);
    }
    up.resolve();
    await sending;
  }

  async #tell({ transfer, teller, answerLost }: Webhook, onAnswer: () => void): Promise<void> {
    const money = this.#money[transfer]?.money;
    if (money === undefined) return;
    const told = { ...money, reference: spelledBy(teller, money.reference) };
    this.#timeline.add(`${teller} tells of ${money.amount} …`);
    const { status } = await deliver(
      this.#feeds.providers[teller],
      told,
      this.#postTo(teller, answerLost, onAnswer),
      Date.now,
    );
    this.#timeline.add(`${teller} has told of ${money.amount}: ${status}`);
    if (status !== 200) throw new Error(`${teller} gave ${money.amount} up: ${status}`);
  }

  #postTo(teller: Teller, answerLost: boolean, onAnswer: () => void): Post {
    let hasFailed = false;
    let isLost = answerLost;
    return async ({ path, headers, body }) => {
      if (hasFailed) await this.#up;
      hasFailed = true;
      const signal = AbortSignal.timeout(WEBHOOK_TIMEOUT_MS);
      const url = `${this.#world.gatewayUrl}/hooks/${teller}${path}`;
      const answer = await fetch(url, { method: 'POST', headers, body, signal }).catch((error: unknown) => {
        this.#report['posts without an answer'] += 1;
        throw error;
      });
      const said: unknown = await answer.json();
      if (path.endsWith('token_generate')) return { status: answer.status, body: said };
      onAnswer();
      this.#report['webhooks answered'] += 1;
      if (isLost) {
        isLost = false;
        this.#report['answers lost'] += 1;
        throw new Error('the answer is lost');
      }
      return { status: answer.status, body: said };
    };
  }

  async #harm(kill: SourcesKill, answered: Promise<void>, sent: Promise<void>): Promise<void> {
    const { victims, at, delayMs, downMs } = kill;
    const gateway = this.#world.programs.get('gateway');
    const timeout = delay(MOMENT_TIMEOUT_MS);
    if (at === 'stored' && gateway !== undefined) {
      // It kills itself. The signal does nothing, but its death is not taken for a fault.
      const gone = gateway.kill('SIGCONT').then(() => true);
      const isGone = await Promise.race([gone, sent.then(() => false), timeout.then(() => false)]);
      if (isGone) this.#report['of them between storing and answering'] += 1;
      await rm(this.#world.dieFile, { force: true });
    } else if (at === 'answered') {
      await Promise.race([answered, sent, timeout]);
    }
    // A timer takes a millisecond at least.
    if (delayMs >= 1) await delay(delayMs);
    await this.#kill(victims, downMs);
  }

  async #kill(victims: SourcesKill['victims'], downMs: number): Promise<void> {
    this.#timeline.add(`kill ${victims.join(', ')}`);
    if (victims.includes('agent')) {
      this.#world.evidence.agentKilled();
      this.#ledger.agentKilled();
      this.#report['agents killed'] += 1;
    }
    if (victims.includes('gateway')) this.#report['gateways killed'] += 1;
    const programs = victims.flatMap((name) => this.#world.programs.get(name) ?? []);
    await Promise.all(programs.map((program) => program.kill()));
    await delay(downMs);
    for (const program of programs) program.start();
    for (const program of programs) await program.ready();
    this.#timeline.add(`started ${victims.join(', ')}`);
  }

  async #settled(): Promise<void> {
    // What a killed agent has not said waits for the end of the QR.
    for (const order of this.#open.splice(0)) await this.#world.shop.cancel(order);
    await until(this.#world, 'all money is where it belongs', () => this.#ledger.owed());
  }

  /** A sale from the QR that a phone reads off the screen to its announcement. */
  async #sellFromScreen(): Promise<void> {
    const transfer: Transfer = {
      kind: this.#plan.last,
      tellers: [this.#plan.last],
      together: false,
      isFresh: true,
      ageMinutes: 0,
      order: 'pushed',
      asks: 'same',
      atPayos: this.#plan.last === 'payos',
    };
    await this.#prepare(transfer);
    const it = this.#money.at(-1);
    if (it === undefined) throw new Error('no sale');
    let code: string | undefined;
    await until(this.#world, 'its QR is on the screen', async () => {
      const seen = await observe(this.#world);
      if (seen?.box.order?.orderId !== it.awaited.orderId) await it.push?.();
      code = CODE.exec(await qrOnScreen(this.#world.boxUrl))?.[0];
      return code !== undefined && reduced(it.money.text).includes(code) ? undefined : `it has the code ${code}`;
    });
    await this.#wave([{ transfer: this.#money.length - 1, teller: this.#plan.last, answerLost: false }], []);
    await this.#settled();
  }
}

function secondOf(atMs: number): number {
  return Math.floor(atMs / SECOND_MS);
}
