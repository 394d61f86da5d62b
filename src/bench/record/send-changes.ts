import type { Order } from './ledger.ts';
import { NO_BOX, type Stand } from './stand.ts';

const WRONG_CHECK_SUM = '0'.repeat(32);

/** How a send-qr differs from the one that the step `push` makes of this order; empty where it does not. */
export function changesOf(
  body: Record<string, unknown>,
  { order, box, answer }: { order: Order; box: string | undefined; answer: string },
  stand: Stand,
): { change?: Record<string, unknown> } {
  const { account } = stand;
  const serial = box === undefined ? undefined : stand.serialOf(box);
  const plain: Record<string, unknown> = {
    bankAccount: account.bankAccount,
    bankCode: account.bankCode,
    amount: String(order.amount),
    content: order.content,
    // One that the step would make up.
    orderId: order.orderId === '' ? undefined : order.orderId,
    terminalCode: box,
    serialNumber: serial,
  };
  const change: Record<string, unknown> = {};
  for (const [field, expected] of Object.entries(plain)) {
    const value = body[field] ?? (OPTIONAL.includes(field) ? '' : null);
    if (value !== expected) change[field] = value;
  }
  if (typeof change.bankCode === 'string' && stand.isOurBank(change.bankCode)) delete change.bankCode;
  if (box === undefined && isCode(change.terminalCode)) change.terminalCode = NO_BOX;
  // Any serial number is one of a box that the bench has, or of none.
  if (box === undefined && isCode(change.serialNumber)) change.serialNumber = NO_BOX;
  // Either code names the box.
  if (change.serialNumber === '' && body.terminalCode === box) delete change.serialNumber;
  if (change.terminalCode === '' && body.serialNumber === serial) delete change.terminalCode;
  // What is written there is not told.
  if (body.checkSum === undefined) change.checkSum = null;
  else if (answer === 'E39') change.checkSum = WRONG_CHECK_SUM;
  return Object.keys(change).length === 0 ? {} : { change };
}

/** Fields that send-qr has as empty when they are left out. */
const OPTIONAL = ['content', 'orderId', 'terminalCode', 'serialNumber'];

function isCode(value: unknown): boolean {
  return typeof value === 'string' && /^VVB\d{6}$/.test(value);
}
