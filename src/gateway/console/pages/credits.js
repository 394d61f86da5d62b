import { $, isOnlyTest, money, pill, stack, table, time } from './elements.js';

const COLUMNS = [
  ['Source', 'mono'],
  ['Amount', 'amount'],
  ['Text of the bank', ''],
  ['Account', 'mono'],
  ['Pays', ''],
  ['At the bank', 'time'],
];

/** Draws the money that sources have reported. */
export function credits(told) {
  $('credit-section').hidden = told.length === 0;
  return [
    table(
      COLUMNS,
      told.map((it) => ({
        cells: [
          stack(it.source, it.reference || it.sourceId),
          stack(money(it.amount), isOnlyTest(it) && pill('SANDBOX')),
          it.text,
          stack(it.bankAccount, it.virtualAccount),
          pays(it),
          stack(time(it.bankTime), it.late ? `late: reported at ${time(it.receivedAt)}` : ''),
        ],
      })),
      '',
    ),
  ];
}

function pays({ transactionId, orderId, due }) {
  if (transactionId === null) return pill('nobody: the account is not in the system, or too old', 'bad');
  const so = due && (due.paid < due.amount ? 'underpaid' : 'overpaid');
  return stack(
    orderId ? `order ${orderId}` : 'the account',
    due && `${so}: ${money(due.paid)} of ${money(due.amount)}`,
  );
}

/** Returns a note about an order that was paid with another amount than it asks for, or that nobody confirms. */
export function paidNote({ status, amount, paidAmount }) {
  if (paidAmount > 0 && paidAmount !== amount) {
    return `${paidAmount < amount ? 'underpaid' : 'overpaid'}: ${money(paidAmount)} came in`;
  }
  return status === 'sent' ? 'to a connected box; nobody confirms it' : '';
}
