import type { Clock } from '../../lib/clock.ts';
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
import type { EnrolmentRequestRow } from '../store/schema/tables.ts';
import { EnrolmentRequests, isSameRequest, type PendingRequest, REMEMBERED_MS } from './enrolment-requests.ts';

/** After this many wrong codes the gateway rejects all requests of the box. */
const WRONG_CODES_MAX = 10;
/** At most this many addresses of the requests of one box are shown. */
const ADDRESSES_SHOWN_MAX = 8;
const SEED_BYTES = 32;

/** Tells which boxes are connected, and closes their connections. */
export interface ConnectedBoxes extends BoxReach {
  isOnline(terminalCode: string): Promise<boolean>;
}

/** Enrols boxes that have no secret (PROTOCOL.md, clause ENR). Stored requests of an earlier run have expired. */
export class Enrolments {
  readonly #world: World;
  readonly #stored: Stored;
  readonly #boxes: ConnectedBoxes;
  readonly #requests: EnrolmentRequests;
  /** Checks whether a public key is usable. */
  readonly #probe: AgreementKey;
  #lastAcceptance: Promise<unknown> = Promise.resolve();

  private constructor(world: World, stored: Stored, boxes: ConnectedBoxes) {
    this.#world = world;
    this.#stored = stored;
    this.#boxes = boxes;
    this.#requests = new EnrolmentRequests(world.clock);
    this.#probe = agreementKeyOf(world.random.secret(SEED_BYTES));
  }

  static async open(world: World, stored: Stored, boxes: ConnectedBoxes): Promise<Enrolments> {
    const enrolments = new Enrolments(world, stored, boxes);
    for (const row of await stored.store.enrolmentRequests.all()) {
      const isKnown = (await stored.directory.box(row.terminal_code)) !== undefined;
      if (isKnown) enrolments.#requests.add(expiredRequest(row, world.clock));
    }
    return enrolments;
  }

  /**
   * Stores the request of a box, and returns the id with which the box asks for its state. A repeated request gets the
   * same id. `waitMs` is the time until there is room for another request (clause ENR-7). Rejects when the store fails.
   */
  async register(
    request: EnrolmentRequest,
    address: string,
  ): Promise<Result<{ id: string }> | { ok: false; waitMs: number }> {
    const { terminalCode, serialNumber } = request;
    const problem = await this.#problem(terminalCode, serialNumber);
    if (problem !== undefined) return problem;
    if (this.#probe.agree(request.publicKey) === undefined) return refuse('E46', 'publicKey: it is not usable');
    const known = this.#requests.live(terminalCode).find((it) => isSameRequest(it.request, request));
    if (known !== undefined) return accept({ id: known.id });
    const waitMs = this.#requests.waitMs(terminalCode, address);
    if (waitMs > 0) return { ok: false, waitMs };
    const { clock, random, log, changes } = this.#world;
    // The request is added before it is stored, because others may ask meanwhile.
    const pending: PendingRequest = {
      id: random.uuid(),
      request,
      address,
      sinceMs: clock.wallMs(),
      untilMs: clock.monotonicMs() + ENROLMENT_LIFETIME_MS,
      state: { state: 'pending' },
    };
    this.#requests.add(pending);
    await this.#keep(pending);
    log.info('enrolment-requested', { box: terminalCode, serialNumber, address });
    changes.publish('enrolments');
    return accept({ id: pending.id });
  }

  /** Returns the state of a request. Undefined if it is unknown, has expired, or is from an earlier run. */
  async state(id: string): Promise<EnrolmentState | undefined> {
    const pending = this.#requests.byId(id);
    if (pending === undefined) return undefined;
    const { config } = this.#world;
    const { isOnline } = this.#boxes;
    // Two agents of one box would replace each other's secret again and again. So the agent that is online keeps its
    // secret.
    const isOpen = config.enrolment === 'open' && !(await isOnline(pending.request.terminalCode));
    if (isOpen) await this.#agreeInTurn(pending, '');
    return pending.state;
  }

  /** Returns the boxes that ask, in the order of their codes. */
  async list(): Promise<EnrolmentView[]> {
    const views: EnrolmentView[] = [];
    for (const terminalCode of this.#requests.boxes().sort()) {
      const pending = this.#requests.live(terminalCode).filter((it) => it.state.state === 'pending');
      const newest = pending.at(-1);
      const box = newest === undefined ? undefined : await this.#stored.directory.box(terminalCode);
      if (newest === undefined || box === undefined) continue;
      const from = [...new Set(pending.map((it) => it.address))].slice(0, ADDRESSES_SHOWN_MAX);
      const since = new Date(newest.sinceMs).toISOString();
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
    if (this.#requests.isFull(terminalCode)) return tooMany(this.#requests.all(terminalCode).length);
    const knowing = this.#requests.all(terminalCode).filter(({ request }) => fitsCode(code, request));
    const found = this.#requests.live(terminalCode).find((it) => it.state.state !== 'rejected' && knowing.includes(it));
    if (found === undefined) return this.#countWrongCode(terminalCode);
    const other = knowing.find((it) => it.request.publicKey !== found.request.publicKey);
    if (other !== undefined) {
      // Two requests know the code, so somebody has read it on the screen. Nobody can know which of the two is the box.
      this.#rejectAll(terminalCode);
      return refuse('CODE_SHARED', `from ${found.address} and ${other.address}`);
    }
    await this.#agreeInTurn(found, code);
    return accept(undefined);
  }

  /** Rejects all requests that name this box. The box then makes a new code. */
  async reject(terminalCode: string): Promise<Result<undefined>> {
    const problem = await this.#problem(terminalCode);
    if (problem !== undefined) return problem;
    this.#rejectAll(terminalCode);
    this.#world.log.info('enrolment-rejected', { box: terminalCode });
    return accept(undefined);
  }

  /** Deletes the secret of an enrolled box. The box must enrol again. */
  async forget(terminalCode: string): Promise<Result<undefined>> {
    const { directory, secrets } = this.#stored;
    const { log, changes } = this.#world;
    const { expel } = this.#boxes;
    const box = await directory.box(terminalCode);
    if (box === undefined) return unknownBox();
    if (!box.enrols) {
      return refuse('ENROLMENT_CLOSED', 'its secret is in the configuration: replace it there and restart the gateway');
    }
    await secrets.forget(terminalCode);
    directory.changed();
    expel(terminalCode, 'its secret was forgotten');
    log.info('box-secret-deleted', { box: terminalCode });
    changes.publish('boxes');
    return accept(undefined);
  }

  /** Stores a request. The gateway must know it after a restart, so this is done before the box shows its code. */
  async #keep(pending: PendingRequest): Promise<void> {
    const { clock } = this.#world;
    const { store } = this.#stored;
    const { terminalCode, serialNumber, publicKey, proof } = pending.request;
    const { id, address, sinceMs } = pending;
    const names = { id, terminal_code: terminalCode, serial_number: serialNumber };
    const row = { ...names, public_key: publicKey, proof, address, asked_at_ms: sinceMs };
    try {
      await store.enrolmentRequests.keep(row, sinceMs - REMEMBERED_MS);
    } catch (error) {
      pending.untilMs = clock.monotonicMs();
      throw error;
    }
  }

  async #problem(terminalCode: string, serialNumber?: string): Promise<Refusal | undefined> {
    const { directory } = this.#stored;
    const { config } = this.#world;
    const box = await directory.box(terminalCode);
    if (box === undefined || (serialNumber ?? box.serialNumber) !== box.serialNumber) return unknownBox();
    if (config.enrolment === 'closed') return refuse('ENROLMENT_CLOSED', 'enrolment is closed');
    if (box.disabled) return refuse('BOX_DISABLED', 'this box is disabled: enable it first');
    if (!box.enrols) return refuse('ENROLMENT_CLOSED', 'the secret of this box is in the configuration');
    return undefined;
  }

  /** Accepts one request after the other. After two acceptances of one box, store and box must have the same secret. */
  #agreeInTurn(pending: PendingRequest, code: string): Promise<void> {
    const concluded = this.#lastAcceptance.then(() => this.#agree(pending, code));
    this.#lastAcceptance = concluded.catch(() => undefined);
    return concluded;
  }

  async #agree(pending: PendingRequest, code: string): Promise<void> {
    const { directory, secrets } = this.#stored;
    const { random, clock, log, changes } = this.#world;
    const { expel } = this.#boxes;
    const { terminalCode, serialNumber, publicKey: boxKey } = pending.request;
    if (pending.state.state !== 'pending') return;
    const key = agreementKeyOf(random.secret(SEED_BYTES));
    const shared = key.agree(boxKey);
    if (shared === undefined) throw new Error('an unusable public key was accepted');
    const agreement = { terminalCode, serialNumber, boxKey, gatewayKey: key.publicKey };
    await secrets.keep({
      terminal_code: terminalCode,
      serial_number: serialNumber,
      secret: agreedSecret(shared, code, agreement),
      enrolled_at_ms: clock.wallMs(),
    });
    directory.changed();
    const how = code === '' ? 'open' : 'code';
    const proof = gatewayProof(code, agreement);
    pending.state = { state: 'accepted', how, publicKey: key.publicKey, proof };
    // The box gets the full time to fetch the result, counted from now.
    pending.untilMs = clock.monotonicMs() + ENROLMENT_LIFETIME_MS;
    // All other requests are rejected, because only one can come from the box.
    for (const other of this.#requests.all(terminalCode)) {
      other.state = isSameRequest(other.request, pending.request) ? pending.state : { state: 'rejected' };
    }
    this.#requests.of(terminalCode).wrongCodes = 0;
    expel(terminalCode, 'the box was enrolled again');
    log.info('box-enrolled', { box: terminalCode, serialNumber, how, address: pending.address });
    changes.publish('enrolments', 'boxes');
  }

  #countWrongCode(terminalCode: string): Refusal {
    const box = this.#requests.of(terminalCode);
    box.wrongCodes += 1;
    if (box.wrongCodes < WRONG_CODES_MAX) return refuse('WRONG_CODE', 'no request of this box fits the code');
    this.#rejectAll(terminalCode);
    return refuse('WRONG_CODE', `${WRONG_CODES_MAX} wrong codes: the box makes a new one`);
  }

  #rejectAll(terminalCode: string): void {
    for (const pending of this.#requests.all(terminalCode)) pending.state = { state: 'rejected' };
    this.#requests.of(terminalCode).wrongCodes = 0;
    this.#world.changes.publish('enrolments');
  }
}

function fitsCode(code: string, { publicKey, proof, ...names }: EnrolmentRequest): boolean {
  return isProof(proof, boxProof(code, { ...names, boxKey: publicKey }));
}

/** Returns a stored request of an earlier run as an expired one. */
function expiredRequest(row: EnrolmentRequestRow, clock: Clock): PendingRequest {
  const { id, terminal_code: terminalCode, serial_number: serialNumber, public_key: publicKey, proof, address } = row;
  const request = { terminalCode, serialNumber, publicKey, proof };
  const untilMs = clock.monotonicMs();
  return { id, request, address, sinceMs: row.asked_at_ms, untilMs, state: { state: 'rejected' } };
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
