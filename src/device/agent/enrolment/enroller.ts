import type { Clock } from '../../../lib/clock.ts';
import { PayboxError, reasonOf } from '../../../lib/errors.ts';
import type { Logger } from '../../../lib/log.ts';
import type { Random } from '../../../lib/random.ts';
import { isLoopbackHost } from '../../../lib/tls.ts';
import {
  type AgreementKey,
  agreedSecret,
  agreementKeyOf,
  boxProof,
  ENROLMENT_CODE_BYTES,
  ENROLMENT_LIFETIME_MS,
  ENROLMENT_POLL_MS,
  type EnrolmentState,
  enrolmentCodeOf,
  enrolmentUrl,
  gatewayProof,
  isProof,
} from '../../../protocol/enrolment.ts';
import type { BoxName } from '../../../protocol/fields.ts';
import type { BoxEvent } from '../../box/state.ts';
import type { GatewayAddress } from '../contract.ts';
import { EnrolmentClient, EnrolmentRefused } from './client.ts';

const RETRY_MAX_MS = 30_000;
/** A disabled box comes back within seconds once it is enabled (PROTOCOL.md, clause REG-6). */
export const DISABLED_RETRY_MS = 5_000;
const SEED_BYTES = 32;

export interface EnrollerDeps {
  clock: Clock;
  random: Random;
  log: Logger;
  identity: BoxName;
  /** The gateway's HTTP address. */
  at: GatewayAddress;
  emit(event: BoxEvent): void;
}

/** One code with its key pair; neither is used for a second attempt. */
interface Attempt {
  code: string;
  key: AgreementKey;
  /** The code expires at this monotonic time. */
  untilMs: number;
  /** The gateway's id of the request; undefined until registered. */
  id: string | undefined;
  /** The monotonic time of the last state request that the gateway answered. */
  askedMs: number;
  isLogged: boolean;
}

/** Gets a secret for a box that has none, by a code on its screen (PROTOCOL.md, clause ENR). */
export class Enroller {
  readonly #deps: EnrollerDeps;
  readonly #client: EnrolmentClient;
  readonly #origin: string;
  #attempt: Attempt | undefined;
  /** The reason of the last failed enrolment; empty while enrolment works. */
  #failure = '';

  constructor(deps: EnrollerDeps) {
    this.#deps = deps;
    this.#client = new EnrolmentClient(deps.at, deps.clock);
    this.#origin = new URL(deps.at.url).origin;
  }

  /**
   * Returns the agreed secret, or undefined once `signal` aborts. The next call shows an unexpired code again. Never
   * throws.
   */
  async run(signal: AbortSignal): Promise<string | undefined> {
    const { clock, log, emit } = this.#deps;
    let shown: Attempt | undefined;
    const takeOff = () => {
      if (shown !== undefined) emit({ type: 'connecting' });
      shown = undefined;
    };
    let waitMs = ENROLMENT_POLL_MS;
    while (!signal.aborted) {
      const attempt = this.#current();
      try {
        attempt.id ??= await this.#register(attempt, signal);
        const askedMs = clock.monotonicMs();
        const state = await this.#client.state(attempt.id, signal);
        attempt.askedMs = askedMs;
        const secret = this.#conclude(attempt, state);
        if (secret !== undefined) return secret;
        // A code counts only while the gateway knows its request. Afterwards, another box may register with the same
        // code.
        const isGood = state?.state === 'pending' && attempt.untilMs > clock.monotonicMs();
        if (!isGood) takeOff();
        else if (shown !== attempt) this.#show(attempt);
        if (isGood) shown = attempt;
        this.#failure = '';
        waitMs = ENROLMENT_POLL_MS;
      } catch (error) {
        if (signal.aborted) break;
        const fix = error instanceof PayboxError && error.fix !== '' ? `; ${error.fix}` : '';
        const now = `${reasonOf(error)}${fix}`;
        if (now !== this.#failure) log.warn('enrolment-failed', { reason: now });
        this.#failure = now;
        // A code on the screen is useless while the gateway does not answer.
        takeOff();
        const isDisabled = error instanceof EnrolmentRefused && error.code === 'BOX_DISABLED';
        if (error instanceof EnrolmentRefused)
          emit({ type: 'refused', code: isDisabled ? 'BOX_DISABLED' : 'NOT_REGISTERED', reason: now });
        waitMs = isDisabled ? DISABLED_RETRY_MS : Math.min(waitMs * 2, RETRY_MAX_MS);
      }
      await clock.sleep(waitMs, signal);
    }
    return undefined;
  }

  #current(): Attempt {
    const { clock, random } = this.#deps;
    const nowMs = clock.monotonicMs();
    // A code may be accepted just before it expires. So a registered one expires only once the gateway was asked later
    // than that.
    const known = this.#attempt;
    if (known !== undefined && known.untilMs > (known.id === undefined ? nowMs : known.askedMs)) return known;
    this.#attempt = {
      code: enrolmentCodeOf(Buffer.from(random.secret(ENROLMENT_CODE_BYTES), 'base64url')),
      key: agreementKeyOf(random.secret(SEED_BYTES)),
      untilMs: nowMs + ENROLMENT_LIFETIME_MS,
      id: undefined,
      askedMs: 0,
      isLogged: false,
    };
    return this.#attempt;
  }

  #register({ code, key }: Attempt, signal: AbortSignal): Promise<string> {
    const { terminalCode, serialNumber } = this.#deps.identity;
    const proof = boxProof(code, { terminalCode, serialNumber, boxKey: key.publicKey });
    return this.#client.register({ terminalCode, serialNumber, publicKey: key.publicKey, proof }, signal);
  }

  #show(attempt: Attempt): void {
    const { code, untilMs } = attempt;
    const { clock, log, identity, emit } = this.#deps;
    const url = enrolmentUrl(this.#origin, identity.terminalCode, code);
    emit({ type: 'enrolling', code, url, expiresInMs: untilMs - clock.monotonicMs() });
    if (!attempt.isLogged) log.info('enrolment-started', { gateway: this.#origin });
    attempt.isLogged = true;
  }

  /** Returns the secret if the gateway has accepted. Throws when the answer is not by somebody who knows the code. */
  #conclude(attempt: Attempt, state: EnrolmentState | undefined): string | undefined {
    if (state?.state === 'pending') return undefined;
    this.#attempt = undefined;
    if (state === undefined) {
      this.#deps.log.info('enrolment-forgotten', { gateway: this.#origin });
      return undefined;
    }
    if (state.state === 'rejected') {
      this.#deps.log.info('enrolment-rejected', { gateway: this.#origin });
      return undefined;
    }
    const { how, publicKey, proof } = state;
    if (how === 'open' && !isLoopbackHost(new URL(this.#origin).hostname)) {
      throw forged('it did not ask for the code, which is allowed on this machine only');
    }
    const code = how === 'open' ? '' : attempt.code;
    const { terminalCode, serialNumber } = this.#deps.identity;
    const agreement = { terminalCode, serialNumber, boxKey: attempt.key.publicKey, gatewayKey: publicKey };
    const shared = attempt.key.agree(publicKey);
    if (shared === undefined || !isProof(proof, gatewayProof(code, agreement))) {
      throw forged('its proof does not match the code');
    }
    this.#deps.log.info('box-enrolled', { gateway: this.#origin, how });
    return agreedSecret(shared, code, agreement);
  }
}

function forged(why: string): EnrolmentRefused {
  const fix = 'check enrolment.url; somebody on the network may have changed the messages';
  return new EnrolmentRefused(`the answer to the enrolment is not the gateway's: ${why}`, fix);
}
