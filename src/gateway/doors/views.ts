import type { BoxView, CallbackView, CreditView, OrderView, PaymentView, SourceView } from '../../protocol/mock-api.ts';
import type { BoxPage, Directory, KnownBox } from '../common/directory.ts';
import type { Stored } from '../common/stored.ts';
import { withoutQuery } from '../config/callback-config.ts';
import { mayDo, type Role } from '../config/roles.ts';
import type { SourceStatus } from '../money/agreements.ts';
import type { Boxes } from '../stages/boxes.ts';
import { type CreditSides, sidesIn } from '../store/repositories/credit-sides.ts';
import type {
  AttemptRow,
  CallbackRow,
  CallbackStatus,
  CreditRow,
  NoticeRow,
  OrderRow,
  PaymentRow,
  PushRow,
} from '../store/schema/tables.ts';
import { boxView, boxViews } from './box-views.ts';
import { time } from './view-time.ts';

/** A list has this many of the newest attempts of a callback. One callback alone has more. */
const ATTEMPTS_IN_LIST_MAX = 20;
const ATTEMPTS_ALONE_MAX = 1000;

/** Makes the JSON of the lists below `/_mock`. Times are ISO 8601 in UTC. */
export interface Views {
  /** Boxes in the order of their codes. */
  boxes(page: BoxPage): Promise<BoxView[]>;
  box(terminalCode: string): Promise<BoxView | undefined>;
  orders(limit: number, before?: string): Promise<OrderView[]>;
  payments(limit: number, before?: string): Promise<PaymentView[]>;
  credits(limit: number, before?: string): Promise<CreditView[]>;
  /**
   * Callbacks with their newest attempts. Callers who are not admins see addresses without their query, which may be a
   * key.
   */
  callbacks(role: Role, limit: number, before?: string, status?: CallbackStatus): Promise<CallbackView[]>;
  callback(role: Role, row: CallbackRow): Promise<CallbackView | undefined>;
}

/** Returns the views of a gateway. */
export function createViews({ store, directory }: Stored, { hub }: Boxes): Views {
  const callbackViews = async (role: Role, rows: CallbackRow[], attemptsMax: number) => {
    const ids = rows.map((it) => it.id);
    const attempts = await store.callbacks.attemptsOf(ids, attemptsMax);
    const tests = await store.history.testsAmong(rows.map((it) => it.payment_id));
    const shown = (it: CallbackRow) => (mayDo(role, 'administer') ? it : { ...it, url: withoutQuery(it.url) });
    return rows.map((it) => ({ ...callbackView(shown(it), attempts), test: tests.has(it.payment_id) }));
  };
  return {
    boxes: (page) => boxViews(page, hub, directory),
    box: async (terminalCode) => {
      const box = await directory.box(terminalCode);
      return box && boxView(box, (await hub.seen([terminalCode])).get(terminalCode), directory);
    },
    orders: async (limit, before) => {
      const rows = await store.orders.newest(limit, before);
      const ids = rows.map((it) => it.id);
      const [pushes, paid] = await Promise.all([store.orders.pushesOf(ids), store.credits.paidFor(ids)]);
      const isSilent = silentAmong(
        await knownAmong(
          directory,
          pushes.map((it) => it.terminal_code),
        ),
      );
      return rows.map((it) => ({ ...orderView(it, pushes, isSilent), paidAmount: paid.get(it.id) ?? 0 }));
    },
    payments: async (limit, before) => {
      const rows = await store.payments.newest(limit, before);
      const ids = rows.map((it) => it.id);
      const [notices, callbacks, credits] = await Promise.all([
        store.payments.noticesOf(ids),
        store.callbacks.ofPayments(ids),
        store.credits.ofPayments(ids),
      ]);
      const codes = [...new Set(notices.map((it) => it.terminal_code))];
      const [known, seen] = await Promise.all([knownAmong(directory, codes), hub.seen(codes)]);
      const isSilent = silentAmong(known);
      const originOf = (row: PaymentRow) => originView(credits.find((it) => it.payment_id === row.id));
      return rows.map((row) => ({
        ...paymentView(row),
        /**
         * If true, this is a payment of a sandbox and no money, whatever the mode of the gateway is now (clause MOD-3).
         */
        test: store.history.isTest(row.seq),
        ...originOf(row),
        boxes: notices
          .filter((it) => it.payment_id === row.id)
          .map((it) => ({
            terminalCode: it.terminal_code,
            /** The box must announce the payment from this time on. */
            since: time(it.created_at_ms),
            online: seen.has(it.terminal_code),
            /** If false, the box was removed from the configuration, and sends no more reports. */
            registered: known.has(it.terminal_code),
            /**
             * The news was already old when the gateway sent it: the box lists it, and announces nothing (clauses
             * MSG-13 and MSG-14).
             */
            late: it.late === 1 || originOf(row).late,
            ...reportView(it, isSilent),
          })),
        callback:
          callbacks
            .filter((it) => it.payment_id === row.id)
            .map((it) => ({ id: it.id, status: it.status, warning: it.warning }))[0] ?? null,
      }));
    },
    credits: async (limit, before) => {
      const rows = await store.credits.newest(limit, before);
      const tests = await store.history.testsAmong(rows.flatMap((it) => it.payment_id ?? []));
      return rows.map((it) => ({ ...creditView(it), test: tests.has(it.payment_id ?? '') }));
    },
    callbacks: async (role, limit, before, status) => {
      return callbackViews(role, await store.callbacks.newest(limit, before, status), ATTEMPTS_IN_LIST_MAX);
    },
    callback: async (role, row) => (await callbackViews(role, [row], ATTEMPTS_ALONE_MAX))[0],
  };
}

/** Returns true if a box confirms nothing. */
type IsSilent = (terminalCode: string) => boolean;

async function knownAmong(directory: Directory, terminalCodes: readonly string[]): Promise<Map<string, KnownBox>> {
  const found = await Promise.all([...new Set(terminalCodes)].map((it) => directory.box(it)));
  return new Map(found.flatMap((it) => (it === undefined ? [] : [[it.terminalCode, it]])));
}

function silentAmong(known: ReadonlyMap<string, KnownBox>): IsSilent {
  return (terminalCode) => known.get(terminalCode)?.dialect === 'vietqr';
}

/**
 * Returns the reports of a box about a payment. A silent box sends none, so the row says that its notice was sent, or
 * that an earlier run may have sent it (as not recorded, clause VQD-6), or that it never was (clause VQD-8).
 */
function reportView({ terminal_code, told_at_ms, reported_at_ms, recorded }: NoticeRow, isSilent: IsSilent) {
  if (!isSilent(terminal_code)) {
    const isRecorded = recorded === null ? null : recorded === 1;
    return { toldAt: time(told_at_ms), reportedAt: time(reported_at_ms), recorded: isRecorded };
  }
  if (reported_at_ms === null) return { toldAt: null, reportedAt: null, recorded: null, unconfirmed: null };
  const isOld = recorded !== 1 && told_at_ms === null;
  const unconfirmed = recorded === 1 ? 'sent' : isOld ? 'not sent: too old' : 'maybe sent';
  return { toldAt: isOld ? null : time(reported_at_ms), reportedAt: null, recorded: null, unconfirmed };
}

function orderView(row: OrderRow, pushes: PushRow[], isSilent: IsSilent): Omit<OrderView, 'paidAmount'> {
  const own = pushes.filter((it) => it.order_ref === row.id);
  const newest = own.at(-1);
  const isUnconfirmed = newest !== undefined && isSilent(newest.terminal_code);
  const statusOf = (status: OrderRow['status'] | PushRow['status'], box: string | undefined) =>
    status === 'shown' && box !== undefined && isSilent(box) ? 'sent' : status;
  return {
    id: row.id,
    orderId: row.order_id,
    partner: row.partner,
    status: statusOf(row.status, newest?.terminal_code),
    /** The box confirms nothing: `sent` means sent to the connected box. */
    unconfirmed: isUnconfirmed,
    failure: row.failure,
    bankAccount: row.bank_account,
    bankCode: row.bank_code,
    userBankName: row.user_bank_name,
    amount: row.amount,
    content: row.content,
    transType: row.trans_type,
    qrCode: row.qr_code,
    box: newest?.terminal_code ?? null,
    shownOn: row.shown_on,
    createdAt: time(row.created_at_ms),
    updatedAt: time(row.updated_at_ms),
    expiresAt: time(newest?.expires_at_ms ?? null),
    paidAt: time(row.paid_at_ms),
    pushes: own.map((it) => ({
      id: it.id,
      terminalCode: it.terminal_code,
      status: statusOf(it.status, it.terminal_code),
      code: it.code,
      createdAt: time(it.created_at_ms),
      confirmedAt: isSilent(it.terminal_code) ? null : time(it.confirmed_at_ms),
      endedAt: time(it.ended_at_ms),
    })),
  };
}

function paymentView(row: PaymentRow) {
  return {
    transactionId: row.id,
    referenceNumber: row.reference_number,
    order: row.order_ref,
    orderId: row.order_id,
    partner: row.partner,
    bankAccount: row.bank_account,
    bankCode: row.bank_code,
    amount: row.amount,
    content: row.content,
    transType: row.trans_type,
    paidAt: time(row.paid_at_ms),
  };
}

/** Returns how the gateway learned of a payment: by a source, or (null) by a test callback or an admin. */
function originView(credit: CreditRow | undefined): CreditSides & { source: string | null } {
  return credit === undefined
    ? { source: null, late: false, due: null }
    : { source: credit.source, ...sidesIn(credit) };
}

function creditView(row: CreditRow & { order_id: string | null }): Omit<CreditView, 'test'> {
  return {
    id: row.id,
    source: row.source,
    sourceId: row.source_id,
    reference: row.reference,
    bankAccount: row.bank_account,
    virtualAccount: row.virtual_account,
    amount: row.amount,
    text: row.text,
    bankTime: time(row.bank_time_ms),
    receivedAt: time(row.received_at_ms),
    ...sidesIn(row),
    /** Null if nobody gets a payment for this credit: its account is not in the system, or it is too old. */
    transactionId: row.payment_id,
    /** The orderId of its order. Empty for an order without one, and without an order. */
    orderId: row.order_id ?? '',
  };
}

function callbackView(row: CallbackRow, attempts: AttemptRow[]): Omit<CallbackView, 'test'> {
  const own = attempts.filter((it) => it.callback_id === row.id);
  return {
    id: row.id,
    transactionId: row.payment_id,
    partner: row.partner,
    url: row.url,
    status: row.status,
    warning: row.warning,
    createdAt: time(row.created_at_ms),
    nextAttemptAt: row.status === 'pending' ? time(row.next_at_ms) : null,
    /** The count of all attempts. `attempts` has only the newest ones. */
    attemptCount: own.at(-1)?.seq ?? 0,
    attempts: own.map((it) => ({
      id: it.id,
      byHand: it.by_hand === 1,
      startedAt: time(it.started_at_ms),
      durationMs: it.duration_ms,
      request: { method: 'POST', url: row.url, headers: JSON.parse(it.request_headers) as unknown, body: row.body },
      response: it.response_status === null ? null : { status: it.response_status, body: it.response_body },
      error: it.error,
    })),
  };
}

/** Returns a source of money as an admin sees it (PROTOCOL.md, clause SRC-30). */
export function sourceView({ name, kind, hasList, found, problem, ...at }: SourceStatus): SourceView {
  return {
    name,
    kind,
    list: hasList,
    lastWebhook: time(at.toldAtMs),
    lastCatchUp: time(at.agreedAtMs),
    agreedUpTo: time(at.agreedUpToMs),
    found,
    problem,
  };
}
