import { makeOrderCode, withFreeCode } from '../../protocol/order-code.ts';
import { encodeVietQr } from '../../protocol/vietqr.ts';
import type { Account, KnownBox } from '../common/directory.ts';
import { accept, type Result, refuse } from '../common/result.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import { withCode } from '../money/content.ts';
import { namesOnly } from '../money/matching.ts';
import type { QrMakers } from '../money/qr-makers.ts';
import type { Sale } from '../store/repositories/sales.ts';
import type { NewOrder } from '../store/schema/tables.ts';
import { EXPECTED } from './expected.ts';
import { NO_NAMES, pushOf } from './order-push.ts';
import type { PushHub } from './partner-pushes.ts';

/** A sale as a cashier enters it. */
export interface SaleRequest {
  /** Whole đồng. */
  amount: number;
  /** The box that shows the QR. '' means the only connected box that has an account. */
  terminalCode: string;
  /** A few words that follow the code in the content of the transfer. It may be ''. */
  note: string;
}

/** The token that sells. */
export interface Seller {
  /** The name of the token. */
  who: string;
  /** The only boxes at which the token may sell, or undefined for all. */
  boxes: readonly string[] | undefined;
}

/** How many boxes a refusal lists. */
const LISTED_MAX = 8;
/** How many connected boxes the gateway searches for the only one with an account. */
const ONLINE_MAX = 1_000;

/**
 * Sells without a back end of the shop: it makes an order with a code of its own and shows it on a box at once
 * (PROTOCOL.md, clause SEL).
 */
export class Sales {
  readonly #world: World;
  readonly #stored: Stored;
  readonly #hub: PushHub;
  readonly #makers: QrMakers;

  constructor(world: World, stored: Stored, hub: PushHub, makers: QrMakers) {
    this.#world = world;
    this.#stored = stored;
    this.#hub = hub;
    this.#makers = makers;
  }

  /**
   * Sells, and settles with the order when the box has confirmed the QR. A sale that the box refused is stored as
   * failed.
   */
  async sell(request: SaleRequest, seller: Seller): Promise<Result<Sale>> {
    const { clock, random, config, changes, log } = this.#world;
    if (!namesOnly(request.note)) return refuse('E46', `note: ${EXPECTED.uncoded}`);
    const found = await this.#boxFor(request.terminalCode, seller.boxes);
    if (!found.ok) return found;
    const { box, account } = found.value;
    if (!(await this.#hub.reachable(box.terminalCode))) return refuse('BOX_OFFLINE', 'the box is not connected');
    if (box.disabled) return refuse('BOX_OFFLINE', 'the box is disabled');
    const nowMs = clock.wallMs();
    const stored = await this.#store({ ...request, soldBy: seller.who }, box, account, nowMs);
    if (!stored.ok) return stored;
    const order = stored.value;
    changes.publish('orders');
    const { push, show } = pushOf(order, {
      pushId: random.uuid(),
      terminalCode: box.terminalCode,
      nowMs,
      lifetimeMs: config.qrLifetimeSeconds * 1000,
    });
    const pushed = await this.#hub.push(push, undefined, show);
    changes.publish('orders');
    if (!pushed.ok) return pushed;
    log.info('sale-created', { box: box.terminalCode, orderId: order.order_id, amount: order.amount });
    const sale = await this.#stored.store.sales.find(order.id);
    if (sale === undefined) throw new Error('the sale that was stored is gone');
    return accept(sale);
  }

  /**
   * Returns the box of this code, or for '' the only connected one, or the only one that exists. With `boxes`, only
   * these count.
   */
  async #boxFor(
    terminalCode: string,
    boxes: readonly string[] | undefined,
  ): Promise<Result<{ box: KnownBox; account: Account }>> {
    const { directory } = this.#stored;
    if (terminalCode !== '' && boxes !== undefined && !boxes.includes(terminalCode)) {
      return refuse('E35', `terminalCode: expected a box of this token: ${boxes.join(', ')}`);
    }
    const found = terminalCode === '' ? await this.#onlyBox(boxes) : accept(await directory.box(terminalCode));
    if (!found.ok) return found;
    const box = found.value;
    if (box === undefined) {
      const known = listed(await this.#linkedBoxes(boxes));
      return refuse('E35', `terminalCode: expected that of a box in the system${known === '' ? '' : `: ${known}`}`);
    }
    const account = await directory.account(box.account ?? '');
    if (account === undefined || account.disabled) {
      return refuse('E36', 'terminalCode: expected a box that is linked to an account that is not disabled');
    }
    return accept({ box, account });
  }

  /** Returns the box of a sale that names none, or undefined if no box has an account. */
  async #onlyBox(boxes: readonly string[] | undefined): Promise<Result<KnownBox | undefined>> {
    const [only, second, ...more] = await this.#ableBoxes(await this.#hub.onlineCodes(ONLINE_MAX, boxes));
    if (only !== undefined) {
      if (second === undefined) return accept(only);
      const able = listed([only, second, ...more]);
      return refuse('E35', `terminalCode: expected one of the boxes that are connected: ${able}`);
    }
    const linked = await this.#linkedBoxes(boxes);
    if (linked.length <= 1) return accept(linked[0]);
    return refuse('E35', `terminalCode: expected that of a box, because none is connected of ${listed(linked)}`);
  }

  async #ableBoxes(terminalCodes: readonly string[]): Promise<KnownBox[]> {
    const found = terminalCodes.length === 0 ? [] : await this.#stored.directory.boxesNamed(terminalCodes);
    return found.filter((it) => it.account !== undefined && !it.disabled);
  }

  async #linkedBoxes(boxes: readonly string[] | undefined): Promise<KnownBox[]> {
    if (boxes === undefined) return this.#stored.directory.linkedBoxes(LISTED_MAX + 1);
    return this.#ableBoxes(boxes);
  }

  /** Stores the order of a sale under a code that no other order of the account has. */
  #store(
    { amount, note, soldBy }: SaleRequest & { soldBy: string },
    box: KnownBox,
    account: Account,
    nowMs: number,
  ): Promise<Result<NewOrder>> {
    const { random } = this.#world;
    return withFreeCode(async () => {
      const made = this.#makers.has(account.bankAccount) ? await this.#makers.make(account, amount) : accept(ownQr());
      if (!made.ok) return made;
      const { code, content, qrCode, request } = made.value;
      // A source writes its own content and identifies the order by a number, so the code need not fit the content.
      if (request === undefined && !namesOnly(content, code)) return undefined;
      const order: NewOrder = {
        ...NO_NAMES,
        id: random.uuid(),
        partner: account.partner ?? '',
        order_id: code,
        bank_account: account.bankAccount,
        bank_code: account.bankCode,
        user_bank_name: account.userBankName,
        amount,
        content,
        trans_type: 'C',
        qr_code: qrCode,
        terminal_code: box.terminalCode,
        created_at_ms: nowMs,
      };
      return (await this.#stored.store.sales.add(order, soldBy, { code, request })) ? accept(order) : undefined;
    });

    function ownQr() {
      const code = makeOrderCode(random);
      const content = withCode(note, code);
      const qrCode = encodeVietQr({
        bin: account.bank.bin,
        account: account.bankAccount,
        service: 'account',
        initiation: 'dynamic',
        amount,
        purpose: content,
      });
      return { code, content, qrCode, request: undefined };
    }
  }
}

/** Lists the codes of boxes for a refusal. */
function listed(boxes: readonly KnownBox[]): string {
  const codes = boxes.map((it) => it.terminalCode).toSorted();
  return codes.length > LISTED_MAX ? `${codes.slice(0, LISTED_MAX).join(', ')} and others` : codes.join(', ');
}
