import type { z } from 'zod';
import { reasonOf } from '../../../lib/errors.ts';
import { isObject } from '../../../protocol/codec.ts';
import {
  type HostCall,
  type HostTopic,
  isOneLevel,
  type PaidToHost,
  paidTopic,
  parseHostTopic,
} from '../../../protocol/dialect.ts';
import { LIMITS } from '../../../protocol/fields.ts';
import { checkOrderRequest, generateRequest, testCallbackRequest } from '../../../protocol/http-api.ts';
import { parseJson } from '../../common/decode.ts';
import type { Partner } from '../../common/directory.ts';
import { accept, type Refusal, type Result, refuse } from '../../common/result.ts';
import type { Stored } from '../../common/stored.ts';
import type { World } from '../../common/world.ts';
import { CallNotes, readLeniently } from '../../partner/call-notes.ts';
import type { PartnerCalls } from '../../partner/partner-calls.ts';
import type { NewPayment } from '../../store/schema/tables.ts';
import { timePaidOf } from './notices.ts';

const SCHEMAS: Record<HostCall, z.ZodObject> = {
  generate: generateRequest,
  status: checkOrderRequest,
  testCallback: testCallbackRequest,
};
/** How many calls of hosts run at once. More are dropped, and a host without an answer asks again. */
const CALLS_MAX = 32;

/** Publishes to hosts. */
export type HostPublish = (topic: string, payload: string) => Promise<unknown>;

/** The partner for whom a host acts, and the body that it sent. */
interface Caller {
  partner: Partner;
  body: unknown;
}

/**
 * Answers hosts, the programs that use the service over MQTT (PROTOCOL.md, clause VQD-7). They share the login of the
 * boxes and have no name of their own. They act for the partner of an account, and only for accounts of boxes of the
 * dialect.
 */
export class Hosts {
  readonly #world: World;
  readonly #stored: Stored;
  readonly #service: PartnerCalls;
  readonly #origin: () => string;
  readonly #publish: HostPublish;
  #calls = 0;

  /** `origin` is the address of the gateway, for links in answers. */
  constructor(world: World, stored: Stored, service: PartnerCalls, origin: () => string, publish: HostPublish) {
    this.#world = world;
    this.#stored = stored;
    this.#service = service;
    this.#origin = origin;
    this.#publish = publish;
  }

  /** Answers a request. Messages on other topics are ignored. */
  receive(topic: string, payload: Buffer): void {
    const asked = parseHostTopic(topic);
    const { log } = this.#world;
    if (asked === undefined) return;
    if (this.#calls >= CALLS_MAX || payload.length > LIMITS.httpBodyBytesMax) {
      log.warn('host-call-dropped', { topic, reason: 'too many calls at once, or too long' });
      return;
    }
    this.#calls += 1;
    this.#answer(topic, asked, payload)
      .catch((error: unknown) => log.error('host-call-failed', { topic, reason: reasonOf(error) }))
      .finally(() => {
        this.#calls -= 1;
      });
  }

  /**
   * Publishes the payment to hosts if its order names a terminal. Hosts act on every message, so it is published once.
   */
  async tellPaid(payment: NewPayment): Promise<void> {
    if (payment.trans_type !== 'C' || payment.order_ref === null || !(await this.#isOfDialect(payment.bank_account)))
      return;
    const terminalCode = (await this.#stored.store.orders.find(payment.order_ref))?.terminal_code ?? '';
    if (!isOneLevel(terminalCode)) return;
    const paid: PaidToHost = {
      bankAccount: payment.bank_account,
      amount: payment.amount,
      timePaid: timePaidOf(payment.paid_at_ms),
      transType: payment.trans_type,
      referenceNumber: payment.reference_number,
      content: payment.content,
      orderId: payment.order_id,
      status: 1,
    };
    await this.#publish(paidTopic(terminalCode), JSON.stringify(paid));
  }

  async #answer(topic: string, asked: HostTopic, payload: Buffer): Promise<void> {
    const { clock, config, log, trafficLog } = this.#world;
    const beganMs = clock.monotonicMs();
    const body = parseJson(payload);
    const caller = body.ok ? await this.#callerOf(body.value) : body;
    const notes = new CallNotes(config.strict);
    const result = caller.ok ? await this.#call(asked, caller.value, notes) : caller;
    const answer = result.ok ? JSON.stringify(result.value) : failureOf(asked, result);
    const by = caller.ok ? caller.value.partner.username : null;
    const tookMs = clock.monotonicMs() - beganMs;
    const status = result.ok ? 200 : 400;
    const told = { reason: result.ok ? null : result.reason, ...notes.listed() };
    const call = { by, method: 'MQTT', path: topic, body: String(payload), status, answer: answer ?? '', tookMs };
    trafficLog.call({ ...call, ...told }, caller.ok);
    if (!result.ok) log.warn('host-call-refused', { topic, code: result.code, reason: result.reason });
    if (answer === undefined) return;
    // The terminalCode of the body wins, as at the public service.
    const named = body.ok && isObject(body.value) ? body.value.terminalCode : undefined;
    const terminalCode = typeof named === 'string' && isOneLevel(named) ? named : asked.terminalCode;
    for (const to of asked.answersFor(terminalCode)) await this.#publish(to, answer);
  }

  async #call({ call }: HostTopic, { partner, body }: Caller, notes: CallNotes): Promise<Result<object>> {
    const origin = this.#origin;
    const json = readLeniently(SCHEMAS[call], body, notes);
    if (call === 'generate') return this.#service.generate(partner, json, { origin: origin(), notes });
    if (call === 'status') {
      const bankAccount = isObject(json) ? String(json.bankAccount) : '';
      return this.#service.checkOrder(
        partner,
        json,
        (await this.#stored.directory.account(bankAccount))?.userBankName ?? '',
      );
    }
    const paid = await this.#service.testCallback(partner, json, notes);
    return paid.ok ? accept({ status: 'SUCCESS', message: paid.value }) : paid;
  }

  async #callerOf(body: unknown): Promise<Result<Caller>> {
    const { directory } = this.#stored;
    const bankAccount = isObject(body) ? body.bankAccount : undefined;
    if (typeof bankAccount !== 'string') return refuse('E46', 'bankAccount: expected a text');
    if (!(await this.#isOfDialect(bankAccount)))
      return refuse('E36', 'bankAccount: expected that of a box of the dialect');
    const partner = await directory.partner((await directory.account(bankAccount))?.partner ?? '');
    if (partner?.disabled !== false)
      return refuse('E77', 'bankAccount: expected an account of a partner that is not disabled');
    return accept({ partner, body });
  }

  async #isOfDialect(bankAccount: string): Promise<boolean> {
    return (await this.#stored.directory.boxesOf(bankAccount)).some(({ dialect }) => dialect === 'vietqr');
  }
}

/** Returns the answer to a refused call. A generate call gets none, as at the public service. */
function failureOf({ call }: HostTopic, { code }: Refusal): string | undefined {
  return call === 'generate' ? undefined : JSON.stringify({ status: 'FAILED', message: code });
}
