import { createHash } from 'node:crypto';
import type { DatabaseClock } from '../store/engines/database-clock.ts';
import type { Topic } from './changes.ts';
import type { LoginBudgets } from './logins.ts';
import type { CreditToShard } from './told-credit.ts';

const QR_REF_BYTES = 16;

/** News between the shards of a cluster. A shard that missed news reads the registry again. */
export type News =
  /** The registry has changed. */
  | { about: 'registry' }
  /** The gateway has another signing key. */
  | { about: 'signing-key' }
  /** Shard `by` reports occurrences of an order that all shards have under this id. */
  | { about: 'occurrence'; id: string; by: number; times: number }
  /** This box must say hello again. */
  | { about: 'renew'; box: string; reason: string }
  /** This box may have lost its right to a session. */
  | { about: 'expel'; box: string; reason: string; disabled: boolean };

/** The place of a gateway that is one shard of a cluster. */
export interface ShardPlace {
  index: number;
  /** The number of shards of the cluster. */
  count: number;
  /** The member that runs the shard. */
  member: string;
  /** The generation of the cluster. It changes when a backup is restored. */
  generation: string;
  /** Wraps the secrets of the registry where dataDir has no key of its own. */
  vaultKey: Buffer;
  /** The calendar of the database, as the member measures it. */
  time: DatabaseClock;
  /** Counts wrong logins at all members. */
  budgets: LoginBudgets;
  /** Sends a credit to the shard that stores it, or to the one that routes it. */
  creditTo: CreditToShard;
  /**
   * Publishes news to every shard of the cluster, including this one. Settles once the news are stored, or with false
   * if they never will be.
   */
  tell(news: News): Promise<boolean>;
}

/** The fields of a box that decide its shard. */
interface Housed {
  account?: string | undefined;
  terminalCode: string;
}

/** Decides which shard a box belongs to (PROTOCOL.md, clause SHA-2). */
export interface Home {
  /** The shard of this hub. */
  shard: number;
  /** Returns the shard of a box. */
  of(box: Housed): number;
}

/** Returns the shard of a name, evenly spread from 0 to `count` - 1. */
export function shardOf(name: string, count: number): number {
  return createHash('sha256').update(name).digest().readUInt32BE() % count;
}

/** Throws in a shard that an account does not belong to: its boxes would never receive the payment. */
export function assertHome(place: ShardPlace | undefined, bankAccount: string): void {
  if (place === undefined) return;
  const home = shardOf(bankAccount, place.count);
  if (home !== place.index) throw new Error(`a payment of shard ${home} came to shard ${place.index}`);
}

/**
 * Returns the shard of a box. It is that of its account, because a payment concerns all boxes of an account. Without an
 * account it is that of its code.
 */
export function homeOf({ account, terminalCode }: Housed, count: number): number {
  return shardOf(account ?? terminalCode, count);
}

/** Returns a name of 16 bytes for the picture of a QR. In a cluster the first two bytes are its shard. */
export function qrRefOf(uuid: string, shard: ShardPlace | undefined): string {
  const bytes = Buffer.from(uuid.replaceAll('-', ''), 'hex');
  if (shard !== undefined) bytes.writeUInt16BE(shard.index);
  return bytes.toString('base64url');
}

/** Returns the shard of the QR of this name, or undefined for a name that no shard has made. */
export function shardOfQrRef(ref: string, count: number): number | undefined {
  const bytes = Buffer.from(ref, 'base64url');
  const shard = bytes.length === QR_REF_BYTES ? bytes.readUInt16BE() : count;
  return shard < count ? shard : undefined;
}

/** Returns where boxes belong, for the hub of a shard. Undefined at a gateway alone, which serves all boxes. */
export function homeIn(place: ShardPlace | undefined): Home | undefined {
  return place && { shard: place.index, of: (box) => homeOf(box, place.count) };
}

/** Returns whether this shard holds the registry of all. A gateway alone does. */
export function isOfRegistry(shard: ShardPlace | undefined): boolean {
  return shard === undefined || shard.index === 0;
}

/** Returns what reaches boxes in every shard. */
export function overCluster({ tell }: ShardPlace) {
  // An admin is answered once no death of a member can undo it.
  const stored = async (news: News) => {
    if (!(await tell(news))) throw new Error('the other shards could not be told');
  };
  return {
    renew: (box: string, reason: string) => stored({ about: 'renew', box, reason }),
    expel: (box: string, reason: string, disabled = false) => stored({ about: 'expel', box, reason, disabled }),
  };
}

/** The parts of a gateway that news of another shard change. */
interface Heeding {
  directory: { refresh(): void };
  sources: { refresh(): Promise<void> };
  hub: { renew(terminalCode: string, reason: string): Promise<void> };
  signer: { reload(): Promise<void> };
  sessionCheck: { soon(): void };
  changes: { publish(...topics: Topic[]): void };
  edges: { happenedElsewhere(id: string, times: number): void };
  place: ShardPlace | undefined;
  expel(terminalCode: string, reason: string, disabled: boolean): Promise<void>;
}

/** Applies news of another shard. */
export async function heedNews(news: News, heeding: Heeding): Promise<void> {
  const { directory, sources, hub, signer, sessionCheck, changes, edges, place, expel } = heeding;
  switch (news.about) {
    case 'registry':
      directory.refresh();
      sessionCheck.soon();
      changes.publish('registry');
      return isOfRegistry(place) ? undefined : sources.refresh();
    case 'signing-key':
      return signer.reload();
    case 'occurrence':
      if (news.by !== place?.index) edges.happenedElsewhere(news.id, news.times);
      return;
    case 'renew':
      return hub.renew(news.box, news.reason);
    case 'expel':
      return expel(news.box, news.reason, news.disabled);
  }
}
