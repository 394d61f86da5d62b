import type { Clock } from '../../lib/clock.ts';
import type { PayboxError } from '../../lib/errors.ts';
import type { ShowBody, UpOf } from '../../protocol/messages.ts';
import type { WirePage } from '../../protocol/wire.ts';
import type { DatabaseClock } from '../store/engines/database-clock.ts';
import type { StoreSharing } from '../store/engines/store-sharing.ts';
import type { HeldInTransaction } from '../store/transact.ts';
import type { Topic } from './changes.ts';
import type { LoginBudgets } from './login-budgets.ts';
import { type Result, refuse } from './result.ts';

/** News to the other gateways of a database. Each of them hears it, also one that was away for a moment. */
export type News =
  /** The registry has changed. */
  | { about: 'registry' }
  /** The gateways have another signing key. */
  | { about: 'signing-key' }
  /** This box must say hello again. */
  | { about: 'renew'; box: string; reason: string }
  /** This box may have lost its right to a session. */
  | { about: 'expel'; box: string; reason: string; disabled: boolean }
  /** A credit of this source was not stored, so its list must be read soon. */
  | { about: 'credit-lost'; source: string }
  /** The edges of one gateway send this text to those of the others. Only they can read it. */
  | { about: 'edges'; text: string };

/** A hint spares another gateway a wait. It may be lost or doubled: what it says is in the rows, too. */
export type Hint =
  /** These lists have changed. */
  | { about: 'lists'; topics: Topic[] }
  /** The store has a new callback for this partner. */
  | { about: 'callbacks'; partner: string }
  /** The store has new notices for these boxes. */
  | { about: 'notices'; boxes: string[] }
  /** This push must leave the screen of its box. */
  | { about: 'withdraw'; box: string; pushId: string; why: 'cancelled' | 'paid' | 'timeout' }
  /** This session has the box now. Any other session of it is over. */
  | { about: 'session'; box: string; sessionId: string }
  /** Nobody has the box any more. */
  | { about: 'left'; box: string };

/** The questions that one gateway asks another, and their answers. */
export interface Questions {
  /** Shows a stored push at a box of that gateway. Answered once the box has confirmed or refused it. */
  push: { question: { box: string; show: ShowBody; askedAtMs: number }; answer: Result<undefined> };
  /** Hands over a message that a box has posted at another gateway than the one that has its stream. */
  post: {
    question: { box: string; sessionId: string; message: string };
    answer: { status: number; reason?: string | undefined };
  };
  /** Asks whether this session of a box may still be in use there (clause MSG-8). */
  heard: { question: { box: string; sessionId: string }; answer: boolean };
  /** Asks for entries of the traffic log after number `since`, or for the calls with a note. */
  traffic: { question: { since: number | null; limit: number }; answer: WirePage };
}
export type Ask = keyof Questions;

/** Receives what the other gateways say. */
export interface Hearing {
  news(news: News): Promise<void>;
  hint(hint: Hint): void;
  answer<K extends Ask>(kind: K, question: Questions[K]['question']): Promise<Questions[K]['answer']>;
  /** Called when this gateway may have missed hints. It then reads the rows. */
  mayHaveMissed(): void;
  /** Called when this gateway cannot reach the database for so long that others take over its boxes. */
  unseen(): void;
}

/** The order of the hellos that a box has signed with one key: a later one has a larger `helloMs` (clause SIG-2). */
export interface HelloOrder {
  kid: string;
  helloMs: number;
}

/** A hello, and its place among the hellos of its box if that was signed. */
export interface OrderedHello extends UpOf<'hello'> {
  order?: HelloOrder | undefined;
}

/** A session of a box, as its holder describes it to others. */
export interface HeldSession {
  terminalCode: string;
  sessionId: string;
  serialNumber: string;
  agentVersion: string;
  display: string;
  transport: string;
  /** Calendar time, in milliseconds since 1970. */
  sinceMs: number;
  /** Undefined for a box that signs nothing. */
  order?: HelloOrder | undefined;
}

/** A session, and the run of the gateway that holds it. */
export interface SessionElsewhere extends HeldSession {
  run: string;
}

/** A gateway of a database, as the others see it. */
export interface GatewaySeen {
  run: string;
  name: string;
  lane: number;
  /** True if it ends soon: no box has its home there any more. */
  leaving: boolean;
  /** How far its clock is ahead of the database's. Null before it knows. */
  aheadMs: number | null;
  /** The number of box sessions that it holds. */
  sessions: number;
  /** The keys at which its configuration differs from that of this gateway. */
  differs: readonly string[];
}

/** The lanes of a database: each gateway has topics of its own at the broker, numbered by its lane (clause SHA-1). */
export interface Lanes {
  /** The lane of this gateway. 0 at a gateway alone. */
  readonly own: number;
  /** The number of lanes, which the presence names. Undefined at a gateway alone. */
  readonly count: number | undefined;
  /** Returns the lane in which a box has its home now. */
  homeOf(terminalCode: string): number;
  /** Returns the lanes without a gateway at which this one answers: it sends boxes from there to their homes. */
  doors(): readonly number[];
  /** True if this gateway ends soon, so that its boxes have their homes elsewhere. */
  readonly isLeaving: boolean;
  /** Calls `changed` whenever homes or doors have changed. */
  watch(changed: () => void): void;
  /**
   * Begins to serve the own lane while `isServed` says so. While it does not for some seconds, the boxes of this lane get
   * homes elsewhere, and others open the doors. `send` says something to the gateway of another lane, and returns false
   * while it cannot.
   */
  serve(isServed: () => boolean, send: (lane: number, sealed: Buffer) => boolean): void;
  /** Takes what was said to the gateway of this lane. On a broker without topic rights it may be anything. */
  said(sealed: Buffer): void;
}

/**
 * The place of a gateway among those of its database. A gateway alone is the only one there, so nobody who uses a place
 * asks whether there are others.
 */
export interface Place {
  /** The id of this run. */
  readonly run: string;
  readonly lanes: Lanes;
  /** Undefined if the store belongs to this gateway alone. */
  readonly sharing: StoreSharing | undefined;
  /** Wraps the secrets of the registry where dataDir has no key of its own. Undefined at a gateway alone. */
  readonly vaultKey: Buffer | undefined;
  /** The calendar of the database. Undefined where the store measures it itself. */
  readonly time: DatabaseClock | undefined;
  /** Counts wrong logins at all gateways. Undefined at a gateway alone. */
  readonly budgets: LoginBudgets | undefined;
  /** Resolves with an error once others have taken over the work of this run. It must then end at once. */
  readonly superseded: Promise<PayboxError> | undefined;

  /** Returns why others may have taken over the work of this run, so that it must take no calls. Undefined if they have not. */
  problem(): string | undefined;
  /** Returns a clock whose calendar is the one of the database. */
  dated(machine: Clock): Clock;
  /**
   * Returns the calendar of such a clock so that nobody changes it by setting the clock of this machine. Gateways that
   * share a database follow its calendar.
   */
  steady(dated: Clock): () => number;
  /** Begins to hear the others. */
  begin(hearing: Hearing): void;

  /**
   * Takes a box for this session, from whoever has it. Settles once that is durable. Rejects when the database does not
   * answer, or when this run has lost its place. `before`: the run that had the box, undefined if none. Settles with
   * undefined if a later session of the box has it, because this hello was late.
   */
  claim(session: HeldSession): Promise<{ before: string | undefined } | undefined>;
  /** Returns a check that this session has the box. Undefined at a gateway alone, where nobody else can take it. */
  heldBy(terminalCode: string, sessionId: string): HeldInTransaction | undefined;
  /** Gives up a box if this session still has it. `comesBack`: it is this gateway that ends the session, and not the box. */
  release(terminalCode: string, sessionId: string, comesBack?: boolean): void;
  /**
   * Returns whether a box without a session is on its way to one: its gateway has sent it away, or was buried, in the
   * last seconds, or it is just saying hello here.
   */
  isComing(terminalCode: string): Promise<boolean>;
  /**
   * Returns the run that has a box elsewhere, as this gateway has read it in the last seconds. A box may have left since:
   * whoever is asked then says so.
   */
  holder(terminalCode: string): Promise<string | undefined>;
  /** Returns the session of a box that another gateway holds. */
  elsewhere(terminalCode: string): Promise<SessionElsewhere | undefined>;
  /** Returns the sessions that other gateways hold, of these boxes. */
  allElsewhere(terminalCodes: readonly string[]): Promise<ReadonlyMap<string, SessionElsewhere>>;
  /** Returns the codes of boxes that other gateways hold, in their order, at most `limit`. */
  onlineElsewhere(limit: number): Promise<string[]>;
  /** Returns those of these sessions, by box, that have lost their box. */
  lost(sessions: ReadonlyMap<string, { sessionId: string }>): Promise<string[]>;

  /**
   * Records that this gateway has the HTTP stream of a session. Settles once the others can find that. Rejects when the
   * database does not answer.
   */
  streamOpened(terminalCode: string, sessionId: string): Promise<void>;
  streamEnded(terminalCode: string, sessionId: string): void;
  /** Returns the run that has the HTTP stream of a session, if it is another one. */
  streamElsewhere(terminalCode: string, sessionId: string): Promise<string | undefined>;

  /**
   * Returns whether this gateway does the work of this name. It takes work that nobody does, and keeps it until its run
   * ends. Never rejects: while the database does not answer, the answer is false.
   */
  lease(work: string): Promise<boolean>;

  /** Tells news. Settles once it is stored, or with false if it never will be. */
  tell(news: News): Promise<boolean>;
  hint(hint: Hint): void;
  /**
   * Asks one gateway. Returns undefined without an answer in time. Never rejects. `mayBeLost`: whoever asks will ask
   * again, so the question takes the way that costs least, and that may lose it.
   */
  ask<K extends Ask>(
    run: string,
    kind: K,
    question: Questions[K]['question'],
    withinMs: number,
    mayBeLost?: boolean,
  ): Promise<Questions[K]['answer'] | undefined>;
  /** Returns the runs of the other gateways. */
  others(): readonly string[];
  /**
   * Returns the gateways of the database, this one included. Empty while the database does not answer. Undefined at a
   * gateway alone.
   */
  seen(): readonly GatewaySeen[] | undefined;
}

/** Returns the place of a gateway that is alone at its store. */
export function placeAlone(run: string): Place {
  return {
    run,
    lanes: {
      own: 0,
      count: undefined,
      homeOf: () => 0,
      doors: () => [],
      isLeaving: false,
      watch: () => undefined,
      serve: () => undefined,
      said: () => undefined,
    },
    sharing: undefined,
    vaultKey: undefined,
    time: undefined,
    budgets: undefined,
    superseded: undefined,
    problem: () => undefined,
    dated: (machine) => machine,
    steady: (machine) => {
      const beganMs = machine.wallMs() - machine.monotonicMs();
      return () => beganMs + machine.monotonicMs();
    },
    begin: () => undefined,
    claim: async () => ({ before: undefined }),
    heldBy: () => undefined,
    release: () => undefined,
    isComing: async () => false,
    holder: async () => undefined,
    elsewhere: async () => undefined,
    allElsewhere: async () => new Map(),
    onlineElsewhere: async () => [],
    lost: async () => [],
    streamOpened: async () => undefined,
    streamEnded: () => undefined,
    streamElsewhere: async () => undefined,
    lease: async () => true,
    tell: async () => true,
    hint: () => undefined,
    ask: async () => undefined,
    others: () => [],
    seen: () => undefined,
  };
}

/** Tells news. Rejects if the other gateways will never hear it. */
export async function mustTell(place: Pick<Place, 'tell'>, news: News): Promise<void> {
  if (!(await place.tell(news))) throw new Error('the other gateways could not be told');
}

/** The answer to a question about a box that is not here any more. */
export const NOT_HERE = refuse('BOX_OFFLINE', 'the box is not connected');

/** The answer to a push whose order another gateway has pushed in this moment. Who reads the order again finds that. */
export const PUSHED_MEANWHILE = refuse('BOX_TIMEOUT', 'another gateway has pushed the order in this moment');
