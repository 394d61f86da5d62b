import { networkOf } from '../../lib/connections.ts';
import { reasonOf } from '../../lib/errors.ts';
import {
  type AgreementKey,
  agreedSecret,
  agreementKeyOf,
  boxProof,
  ENROLMENT_LIFETIME_MS,
  type EnrolmentRequest,
  type EnrolmentState,
  gatewayProof,
  isProof,
  readEnrolmentCode,
} from '../../protocol/enrolment.ts';
import type { EnrolmentView } from '../../protocol/mock-api.ts';
import type { BoxReach } from '../common/box-reach.ts';
import { accept, type Refusal, type Result, refuse } from '../common/result.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import type { EnrolmentChange, RequestCounts } from '../store/repositories/enrolment-requests.ts';
import type { BoxSecretRow, EnrolledSecret, EnrolmentRequestRow } from '../store/schema/tables.ts';
import { isFull, isSameRequest, stateOf, waitMsOf } from './enrolment-requests.ts';

/** After this many wrong codes the gateway rejects all requests of the box. */
const WRONG_CODES_MAX = 10;
/** At most this many addresses of the requests of one box are shown. */
const ADDRESSES_SHOWN_MAX = 8;
const SEED_BYTES = 32;

/** Tells which boxes are connected, and closes their connections. */
export interface ConnectedBoxes extends BoxReach {
  isOnline(terminalCode: string): Promise<boolean>;
}

/** The outcome of an admin's code, or of an open gateway, which needs none. */
interface Decided {
  change: EnrolmentChange;
  result: Result<undefined>;
  /** The request that was accepted just now. */
  accepted?: { address: string; how: 'code' | 'open' };
}

/**
 * Enrols boxes that have no secret (PROTOCOL.md, clause ENR). The requests are in the store, so that any gateway answers
 * the box and the admin. A request expires with the run of the gateway that took it.
 */
export class Enrolments {
  readonly #world: World;
  readonly #stored: Stored;
  readonly #boxes: ConnectedBoxes;
  /** Checks whether a public key is usable. */
  readonly #probe: AgreementKey;
  /** A code must not live longer when somebody sets the clock of the machine. */
  readonly #calendar: () => number;

  constructor(world: World, stored: Stored, boxes: ConnectedBoxes) {
    this.#world = world;
    this.#stored = stored;
    this.#boxes = boxes;
    this.#probe = agreementKeyOf(world.random.secret(SEED_BYTES));
    this.#calendar = world.place.steady(world.machine);
  }

  /**
   * Stores the request of a box, and returns the id with which the box asks for its state. A repeated request gets the
   * same id. `waitMs` is the time until there is room for another request (clause ENR-7). Rejects when the store fails.
   */
  async register(
    request: EnrolmentRequest,
    address: string,
  ): Promise<Result<{ id: string }> | { ok: false; waitMs: number }> {
    const { terminalCode, serialNumber, publicKey, proof } = request;
    const problem = await this.#problem(terminalCode, serialNumber);
    if (problem !== undefined) return problem;
    if (this.#probe.agree(publicKey) === undefined) return refuse('E46', 'publicKey: it is not usable');
    const { random, log, changes, place } = this.#world;
    const nowMs = this.#nowMs();
    const names = { id: random.uuid(), terminal_code: terminalCode, serial_number: serialNumber };
    const from = { address, network: networkOf(address), run: place.run };
    const times = { asked_at_ms: nowMs, until_ms: nowMs + ENROLMENT_LIFETIME_MS };
    const added = await this.#stored.store.enrolmentRequests.add(
      { ...names, public_key: publicKey, proof, ...from, ...times },
      (row) => this.#isLive(row),
      (counts) => waitMsOf(counts, nowMs),
    );
    if ('waitMs' in added) return { ok: false, waitMs: added.waitMs };
    if (added.isNew) log.info('enrolment-requested', { box: terminalCode, serialNumber, address });
    if (added.isNew) changes.publish('enrolments');
    return accept({ id: added.id });
  }

  /** Returns the state of a request. Undefined if it is unknown, has expired, or is from an earlier run. */
  async state(id: string): Promise<EnrolmentState | undefined> {
    const { enrolmentRequests } = this.#stored.store;
    let row = await enrolmentRequests.find(id);
    if (row === undefined || !this.#isLive(row)) return undefined;
    // Two agents of one box would replace each other's secret again and again. So the agent that is online keeps its
    // secret.
    const isOpen = this.#world.config.enrolment === 'open' && row.state === null;
    if (isOpen && !(await this.#boxes.isOnline(row.terminal_code))) {
      await this.#decide(row.terminal_code, (agree, requests) => {
        const own = requests.find((it) => it.id === id && it.state === null);
        return own === undefined ? { change: { kind: 'none' }, result: accept(undefined) } : agree(own, requests, '');
      });
      row = (await enrolmentRequests.find(id)) ?? row;
    }
    const state = stateOf(row);
    // Another gateway may have accepted it. The box logs in now, under a secret that is not in the cache yet.
    if (state.state === 'accepted') this.#stored.directory.refresh();
    return state;
  }

  /** Returns the boxes that ask, in the order of their codes. */
  async list(): Promise<EnrolmentView[]> {
    const rows = await this.#stored.store.enrolmentRequests.pending(this.#runs(), this.#nowMs());
    const views: EnrolmentView[] = [];
    for (const [terminalCode, pending] of Map.groupBy(rows, (it) => it.terminal_code)) {
      const newest = pending.at(-1);
      const box = await this.#stored.directory.box(terminalCode);
      if (newest === undefined || box === undefined) continue;
      const from = [...new Set(pending.map((it) => it.address))].slice(0, ADDRESSES_SHOWN_MAX);
      const since = new Date(newest.asked_at_ms).toISOString();
      const replaces = box.enrols && box.secret !== undefined;
      views.push({ terminalCode, serialNumber: box.serialNumber, requests: pending.length, from, since, replaces });
    }
    return views;
  }

  /** Gives a secret to the box that shows this code. It replaces the box's older secret. */
  async accept(terminalCode: string, typed: string): Promise<Result<undefined>> {
    const problem = await this.#problem(terminalCode);
    if (problem !== undefined) return problem;
    const code = readEnrolmentCode(typed);
    if (code === undefined) return refuse('WRONG_CODE', 'a code is 12 letters and digits, as 7K2M-Q0XA-94TZ');
    const { result } = await this.#decide(terminalCode, (agree, requests, counts) => {
      if (isFull(counts)) return { change: { kind: 'none' }, result: tooMany(requests.length) };
      const knowing = requests.filter((it) => fitsCode(code, it));
      const found = knowing.find((it) => this.#isLive(it) && stateOf(it).state !== 'rejected');
      if (found === undefined) return wrongCode(requests.filter((it) => this.#isLive(it)));
      const other = knowing.find((it) => it.public_key !== found.public_key);
      if (other === undefined) return agree(found, requests, code);
      // Two requests know the code, so somebody has read it on the screen. Nobody can know which of the two is the box.
      return {
        change: { kind: 'rejected' },
        result: refuse('CODE_SHARED', `from ${found.address} and ${other.address}`),
      };
    });
    return result;
  }

  /** Rejects all requests that name this box. The box then makes a new code. */
  async reject(terminalCode: string): Promise<Result<undefined>> {
    const problem = await this.#problem(terminalCode);
    if (problem !== undefined) return problem;
    await this.#decide(terminalCode, () => ({ change: { kind: 'rejected' }, result: accept(undefined) }));
    this.#world.log.info('enrolment-rejected', { box: terminalCode });
    return accept(undefined);
  }

  /** Deletes the secret of an enrolled box. The box must enrol again. */
  async forget(terminalCode: string): Promise<Result<undefined>> {
    const { directory, secrets } = this.#stored;
    const { log, changes } = this.#world;
    const box = await directory.box(terminalCode);
    if (box === undefined) return unknownBox();
    if (!box.enrols) {
      return refuse('ENROLMENT_CLOSED', 'its secret is in the configuration: replace it there and restart the gateway');
    }
    await secrets.forget(terminalCode);
    directory.changed();
    this.#expel(terminalCode, 'its secret was forgotten');
    log.info('box-secret-deleted', { box: terminalCode });
    changes.publish('boxes');
    return accept(undefined);
  }

  async #problem(terminalCode: string, serialNumber?: string): Promise<Refusal | undefined> {
    const box = await this.#stored.directory.box(terminalCode);
    if (box === undefined || (serialNumber ?? box.serialNumber) !== box.serialNumber) return unknownBox();
    if (this.#world.config.enrolment === 'closed') return refuse('ENROLMENT_CLOSED', 'enrolment is closed');
    if (box.disabled) return refuse('BOX_DISABLED', 'this box is disabled: enable it first');
    if (!box.enrols) return refuse('ENROLMENT_CLOSED', 'the secret of this box is in the configuration');
    return undefined;
  }

  /**
   * Reads the requests of a box and answers them in one transaction, then reports the change. `agree` makes the change
   * that accepts a request.
   */
  async #decide(
    terminalCode: string,
    decide: (agree: Agree, requests: EnrolmentRequestRow[], counts: RequestCounts) => Decided,
  ): Promise<Decided> {
    const { store, secrets, directory } = this.#stored;
    const { log, changes } = this.#world;
    const nowMs = this.#nowMs();
    const wrap = await secrets.wrapping();
    const agree: Agree = (...of) => this.#agree(wrap, nowMs, ...of);
    const decided = await store.enrolmentRequests.decide<Decided>(terminalCode, nowMs, (requests, counts) =>
      decide(agree, requests, counts),
    );
    const { change, accepted } = decided;
    if (change.kind !== 'none') changes.publish('enrolments');
    if (change.kind !== 'accepted' || accepted === undefined) return decided;
    directory.changed();
    this.#expel(terminalCode, 'the box was enrolled again');
    log.info('box-enrolled', { box: terminalCode, serialNumber: change.secret.serial_number, ...accepted });
    changes.publish('boxes');
    return decided;
  }

  /** Makes the secret that a box and the gateways share. All other requests are rejected: only one is of the box. */
  #agree(
    wrap: (secret: EnrolledSecret) => BoxSecretRow,
    nowMs: number,
    request: EnrolmentRequestRow,
    requests: readonly EnrolmentRequestRow[],
    code: string,
  ): Decided {
    const { random, clock } = this.#world;
    const { terminal_code: terminalCode, serial_number: serialNumber, public_key: boxKey, address } = request;
    if (request.state !== null) return { change: { kind: 'none' }, result: accept(undefined) };
    const key = agreementKeyOf(random.secret(SEED_BYTES));
    const shared = key.agree(boxKey);
    if (shared === undefined) throw new Error('an unusable public key was accepted');
    const agreement = { terminalCode, serialNumber, boxKey, gatewayKey: key.publicKey };
    const secret = agreedSecret(shared, code, agreement);
    const names = { terminal_code: terminalCode, serial_number: serialNumber };
    const how = code === '' ? 'open' : 'code';
    const proof = gatewayProof(code, agreement);
    const state: EnrolmentState = { state: 'accepted', how, publicKey: key.publicKey, proof };
    const others = requests.filter((it) => it.id !== request.id && isSameRequest(it, request)).map((it) => it.id);
    const change: EnrolmentChange = {
      kind: 'accepted',
      ids: [request.id, ...others],
      state: JSON.stringify(state),
      // The box gets the full time to fetch the result, counted from now.
      untilMs: nowMs + ENROLMENT_LIFETIME_MS,
      secret: wrap({ ...names, secret, enrolled_at_ms: clock.wallMs() }),
    };
    return { change, result: accept(undefined), accepted: { how, address } };
  }

  #expel(terminalCode: string, why: string): void {
    this.#boxes.expel(terminalCode, why).catch((error: unknown) => {
      this.#world.log.warn('box-not-expelled', { box: terminalCode, reason: reasonOf(error) });
    });
  }

  #nowMs(): number {
    return Math.round(this.#calendar());
  }

  /** Returns the runs of the gateways that live. */
  #runs(): string[] {
    const { place } = this.#world;
    return [place.run, ...place.others()];
  }

  #isLive({ run, until_ms }: EnrolmentRequestRow): boolean {
    return until_ms > this.#nowMs() && this.#runs().includes(run);
  }
}

/** Makes the change that accepts a request: the only one of these that is of the box. */
type Agree = (request: EnrolmentRequestRow, requests: readonly EnrolmentRequestRow[], code: string) => Decided;

/** Counts a wrong code. After the last one the box must make a new one. */
function wrongCode(live: readonly EnrolmentRequestRow[]): Decided {
  const before = Math.max(0, ...live.map((it) => it.wrong_codes));
  if (before + 1 < WRONG_CODES_MAX) {
    return { change: { kind: 'wrong-code' }, result: refuse('WRONG_CODE', 'no request of this box fits the code') };
  }
  const result = refuse('WRONG_CODE', `${WRONG_CODES_MAX} wrong codes: the box makes a new one`);
  return { change: { kind: 'rejected' }, result };
}

function fitsCode(code: string, row: EnrolmentRequestRow): boolean {
  const { terminal_code: terminalCode, serial_number: serialNumber, public_key: boxKey, proof } = row;
  return isProof(proof, boxProof(code, { terminalCode, serialNumber, boxKey }));
}

/**
 * Refuses a code because requests were refused before. One of those may have had the same code, so nobody can know
 * whether the code is unique.
 */
function tooMany(requests: number): Refusal {
  return refuse(
    'CODE_SHARED',
    `another request may have the same code: this box has ${requests}, and more were refused; try again later`,
  );
}

function unknownBox(): Refusal {
  return refuse('E35', 'no box has this terminalCode and serialNumber');
}
