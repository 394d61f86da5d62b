import { accountCheckSum, equalSecrets } from '../../protocol/checksum.ts';
import { type CheckedOrder, checkOrderRequest } from '../../protocol/http-api.ts';
import { decodeBody } from '../common/decode.ts';
import type { Directory, Partner } from '../common/directory.ts';
import { accept, type Result, refuse } from '../common/result.ts';
import type { OrderRow, OrderStatus, PaymentRow } from '../store/schema/tables.ts';
import { EXPECTED } from './expected.ts';

/** A search of a partner among the orders of an account. */
export interface Sought {
  by: 'orderId' | 'referenceNumber';
  value: string;
  bankAccount: string;
}

const BY: Partial<Record<string, Sought['by']>> = { 0: 'orderId', 1: 'referenceNumber' };
/**
 * Statuses of orders whose QR nobody can pay any more. An order that is `paid` without a payment was paid by a test
 * only.
 */
const OVER: readonly OrderStatus[] = ['cancelled', 'expired', 'dismissed', 'paid'];

/** Checks a check-order request (PROTOCOL.md, clauses CHK-1 and CHK-2). */
export async function decideCheckOrder(
  json: unknown,
  { partner, name, directory }: { partner: Partner; name: string; directory: Directory },
): Promise<Result<Sought>> {
  const decoded = decodeBody(checkOrderRequest, json);
  if (!decoded.ok) return decoded;
  const { bankAccount, type, value, checkSum } = decoded.value;
  if (value === '') return refuse('E46', 'value: expected an orderId or a referenceNumber');
  if (!equalSecrets(checkSum, accountCheckSum(bankAccount, name))) {
    return refuse(
      'E39',
      'checkSum: expected the lower-case MD5 of bankAccount and user name (over MQTT, the holder of the account)',
    );
  }
  if ((await directory.account(bankAccount))?.partner !== partner.username) return refuse('E77', EXPECTED.ownAccount);
  const by = BY[String(type)];
  return by === undefined
    ? refuse('E95', 'type: expected 0, to look for an orderId, or 1, for a referenceNumber')
    : accept({ by, value, bankAccount });
}

/** Returns each payment of each order, or the order itself if it has none (PROTOCOL.md, clause CHK-3). */
export function checkedOrders(orders: readonly OrderRow[], payments: readonly PaymentRow[]): CheckedOrder[] {
  const own = (order: OrderRow) => payments.filter((it) => it.order_ref === order.id);
  const ofOrders = orders.flatMap((order) => {
    const paid = own(order).map((payment) => rowOf(order, payment));
    return paid.length === 0 ? [rowOf(order, undefined)] : paid;
  });
  const others = payments.filter((it) => !orders.some(({ id }) => id === it.order_ref));
  return [...ofOrders, ...others.map((payment) => rowOf(undefined, payment))];
}

function rowOf(order: OrderRow | undefined, payment: PaymentRow | undefined): CheckedOrder {
  const isOver = order !== undefined && OVER.includes(order.status);
  const status = payment !== undefined ? 1 : isOver ? 2 : 0;
  return {
    referenceNumber: payment?.reference_number ?? '',
    orderId: order?.order_id ?? '',
    amount: payment?.amount ?? order?.amount ?? 0,
    content: payment?.content ?? order?.content ?? '',
    transType: payment?.trans_type ?? order?.trans_type ?? 'C',
    status,
    type: order === undefined ? 2 : 0,
    timeCreated: seconds(order?.created_at_ms ?? payment?.paid_at_ms ?? 0),
    timePaid: seconds(payment?.paid_at_ms ?? 0),
    terminalCode: order?.terminal_code ?? '',
    note: '',
    refundCount: 0,
    amountRefunded: 0,
  };
}

function seconds(ms: number): number {
  return Math.floor(ms / 1000);
}
