import { withAbortAfter } from '../../lib/clock.ts';
import { reasonOf } from '../../lib/errors.ts';
import { makeOrderCode } from '../../protocol/order-code.ts';
import { isAmong } from '../../protocol/virtual-accounts.ts';
import type { Account } from '../common/directory.ts';
import { accept, type Result, refuse } from '../common/result.ts';
import type { World } from '../common/world.ts';
import type { NewPaymentRequest } from '../store/schema/tables.ts';
import type { Asking } from './asking.ts';
import type { Sources } from './open-sources.ts';
import type { AskSource, MadeQr, QrMaker, Source } from './sources/source.ts';

/** The timeout is short, because a cashier or a program waits for the QR. */
const MAKE_TIMEOUT_MS = 10_000;
/** How many QRs are made at once. */
const MAKING_MAX = 100;
/** A QR is pushed within this time after it was made, and then shown for its lifetime. */
const PUSHED_WITHIN_MS = 3_600_000;
/** How many hexadecimal digits of the code make an order's number. JavaScript holds 13 of them exactly. */
const NUMBER_DIGITS = 13;

/** A QR that a source made for an order, with what is stored beside the order. */
export interface MadeForOrder {
  qrCode: string;
  /** The content in the QR. */
  content: string;
  /** The code by which the text of a bank names the order. */
  code: string;
  request: NewPaymentRequest;
}

/** Lets sources make the QRs of orders (PROTOCOL.md, clauses PQR-1 and PQR-2). */
export class QrMakers {
  readonly #world: World;
  readonly #sources: Sources;
  readonly #askOf: Asking['of'];
  #making = 0;

  constructor(world: World, sources: Sources, askOf: Asking['of']) {
    this.#world = world;
    this.#sources = sources;
    this.#askOf = askOf;
  }

  /** Returns whether a source makes the QRs of this account's orders. */
  has(bankAccount: string): boolean {
    return this.#sources.makerFor(bankAccount) !== undefined;
  }

  /**
   * Makes the QR for an order of this account and amount. A failure is refused with QR_NOT_MADE, and nothing is stored.
   */
  async make(account: Account, amount: number): Promise<Result<MadeForOrder>> {
    const { clock, random, config } = this.#world;
    const found = this.#sources.makerFor(account.bankAccount);
    if (found === undefined) throw new Error(`no source makes QRs of ${account.bankAccount}`);
    const { source, maker } = found;
    const nowMs = clock.wallMs();
    const code = makeOrderCode(random);
    const orderCode = Number.parseInt(random.uuid().replaceAll('-', '').slice(0, NUMBER_DIGITS), 16) || 1;
    const expiresAtMs = nowMs + config.qrLifetimeSeconds * 1000 + PUSHED_WITHIN_MS;
    const made = await this.#ask(source, (ask) =>
      maker.make({ orderCode, amount, description: code, expiresAtMs }, ask),
    );
    if (!made.ok) return made;
    const { qrCode, qr } = made.value;
    const problem = payeeProblem(qr, account, maker);
    if (problem !== undefined) return refuse('QR_NOT_MADE', problem);
    const virtual_account = qr.account === account.bankAccount ? '' : qr.account;
    const times = { created_at_ms: nowMs, expires_at_ms: expiresAtMs };
    return accept({
      qrCode,
      content: qr.purpose ?? code,
      code,
      request: { source: source.name, order_code: orderCode, virtual_account, ...times },
    });
  }

  async #ask(source: Source, make: (ask: AskSource) => Promise<MadeQr>): Promise<Result<MadeQr>> {
    const { clock } = this.#world;
    const askOf = this.#askOf;
    if (this.#making >= MAKING_MAX) {
      return refuse('QR_NOT_MADE', `${MAKING_MAX} QRs are being made at ${source.name}: call again later`);
    }
    this.#making += 1;
    try {
      const made = await withAbortAfter(clock, MAKE_TIMEOUT_MS, undefined, (signal) => {
        const ask = askOf(source);
        return make((url, request) => ask(url, { ...request, signal }));
      });
      return accept(made);
    } catch (error) {
      return refuse('QR_NOT_MADE', `${source.name}: ${reasonOf(error)}`);
    } finally {
      this.#making -= 1;
    }
  }
}

/** Returns why a box of this account may not show a QR, or undefined if it may. */
function payeeProblem(qr: MadeQr['qr'], { bankAccount, bank }: Account, maker: QrMaker): string | undefined {
  const isOwn = qr.service === 'account' && qr.account === bankAccount && qr.bin === bank.bin;
  if (isOwn || isAmong(maker.virtualAccounts, qr)) return undefined;
  return `the QR pays to ${qr.account} at ${qr.bin}: expected the account itself, or one of qr.virtualAccounts`;
}
