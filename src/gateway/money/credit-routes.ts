import { type ShardPlace, shardOf } from '../common/shard.ts';
import type { Stored } from '../common/stored.ts';
import type { CreditResult, CreditTask, ToldCredit } from '../common/told-credit.ts';
import type { World } from '../common/world.ts';
import type { CreditRow } from '../store/schema/tables.ts';
import type { Store } from '../store/store.ts';
import type { WaitingOrders } from './catch-up.ts';
import { accountOf, type ReceiveCredit, type ReceivedCredit, rowOf } from './receive-credits.ts';

/**
 * How many credits wait in shard 0 for others of the same amount. The gateway refuses more, and the source retries
 * them.
 */
const WAITING_MAX = 10_000;
/** The shard that finds the shard of every credit. */
const ROUTER = 0;

/**
 * Sends each credit of a cluster to its shard (PROTOCOL.md, clause SHA-9). Shard 0 receives all of them and looks in
 * every shard for the same credit, the account and the order. The shard of the account stores the credit. Shard 0
 * stores one of an unknown account.
 */
export class CreditRoutes {
  readonly #world: World;
  readonly #stored: Stored;
  readonly #place: ShardPlace;
  readonly #storeHere: ReceiveCredit;
  /**
   * The last task by amount. The same credit always has the same amount, so two reports of it run one after the other.
   */
  readonly #last = new Map<number, Promise<unknown>>();
  #waiting = 0;

  constructor(world: World, stored: Stored, place: ShardPlace, storeHere: ReceiveCredit) {
    this.#world = world;
    this.#stored = stored;
    this.#place = place;
    this.#storeHere = storeHere;
  }

  /** Receives a credit of any shard. */
  readonly receive: ReceiveCredit = async (source, credit, caughtUp) => {
    const place = this.#place;
    const told = { source, credit, caughtUp };
    if (place.index === ROUTER) return this.#route(told);
    return reported(await place.creditTo(ROUTER, 'route', told));
  };

  /** Receives a credit that another shard sends to this one. */
  async take(task: CreditTask, told: ToldCredit): Promise<CreditResult> {
    const storeHere = this.#storeHere;
    const { result, report } =
      task === 'route' ? await this.#route(told) : await storeHere(told.source, told.credit, told.caughtUp);
    report();
    return result;
  }

  #route(told: ToldCredit): Promise<ReceivedCredit> {
    const { amount } = told.credit;
    if (this.#waiting >= WAITING_MAX) throw new Error(`${WAITING_MAX} credits wait to be stored`);
    this.#waiting += 1;
    const before = this.#last.get(amount) ?? Promise.resolve();
    const routed = before.then(() => this.#storeAtHome(told));
    const settled = routed
      .catch(() => undefined)
      .then(() => {
        this.#waiting -= 1;
        if (this.#last.get(amount) === settled) this.#last.delete(amount);
      });
    this.#last.set(amount, settled);
    return routed;
  }

  async #storeAtHome(told: ToldCredit): Promise<ReceivedCredit> {
    const place = this.#place;
    const storeHere = this.#storeHere;
    const home = await this.#homeOf(told);
    if (home === place.index) return storeHere(told.source, told.credit, told.caughtUp);
    return reported(await place.creditTo(home, 'store', told));
  }

  /**
   * Returns the shard that already paid the credit out, else the shard of its account, else the one that has stored it.
   */
  async #homeOf({ source, credit, caughtUp }: ToldCredit): Promise<number> {
    const { clock, config } = this.#world;
    const place = this.#place;
    const row = rowOf(source, credit, {
      receivedAtMs: clock.wallMs(),
      caughtUp,
      virtualAccounts: config.virtualAccounts,
    });
    const names = [row.bank_account, row.virtual_account].filter((it) => it !== '');
    const behind = new Map<string, string>();
    for (const name of names) {
      const account = await this.#first(({ paymentRequests }) => paymentRequests.accountBehind(name));
      if (account !== undefined) behind.set(name, account);
    }
    const mains = new Map([...behind, ...config.virtualAccounts]);
    let kept: number | undefined;
    for (let shard = 0; shard < place.count; shard += 1) {
      const same: CreditRow | undefined = await this.#stored.store.ofShard(shard).credits.same(row, mains);
      if (same !== undefined && same.payment_id !== null) return shard;
      if (same !== undefined) kept ??= shard;
    }
    const requests = {
      accountOf: (of: string, code: number) => this.#first((it) => it.paymentRequests.accountOf(of, code)),
      accountBehind: async (name: string) => behind.get(name),
    };
    const account = await accountOf(this.#world, this.#stored, requests, source, credit, row);
    return account === undefined ? (kept ?? ROUTER) : shardOf(account.bankAccount, place.count);
  }

  /** Returns the answer of the first shard that has one. */
  async #first<T>(ask: (shard: ReturnType<Store['ofShard']>) => Promise<T | undefined>): Promise<T | undefined> {
    const { store } = this.#stored;
    const place = this.#place;
    for (let shard = 0; shard < place.count; shard += 1) {
      const found = await ask(store.ofShard(shard));
      if (found !== undefined) return found;
    }
    return undefined;
  }
}

/** Returns a result without a report, because the shard that stored the credit reports it. */
function reported(result: CreditResult): ReceivedCredit {
  return { result, report: () => undefined };
}

/** Reads the unpaid orders of all shards. Catch-up runs in shard 0 only and needs them all. */
export function waitingInAll(store: Store, count: number): WaitingOrders {
  const ofAll = async <T extends { created_at_ms: number }>(
    limit: number,
    read: (shard: ReturnType<Store['ofShard']>) => Promise<T[]>,
  ): Promise<T[]> => {
    const rows: T[] = [];
    for (let shard = 0; shard < count; shard += 1) rows.push(...(await read(store.ofShard(shard))));
    return rows.toSorted((a, b) => b.created_at_ms - a.created_at_ms).slice(0, limit);
  };
  return {
    setting: (name, make) => store.setting(name, make),
    replaceSetting: (name, value) => store.replaceSetting(name, value),
    orders: { newest: (limit) => ofAll(limit, ({ orders }) => orders.newest(limit)) },
    paymentRequests: { open: (source, limit) => ofAll(limit, (it) => it.paymentRequests.open(source, limit)) },
  };
}
