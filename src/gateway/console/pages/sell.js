import { $, el, money, notice, pill, stack, table, time } from './elements.js';

const COLUMNS = [
  ['Code', 'mono'],
  ['Amount', 'amount'],
  ['Content', ''],
  ['Status', ''],
  ['Box', ''],
  ['Made', 'time'],
  ['', 'acts'],
];

export const sumOf = ({ day, sales, paid, amount }) =>
  sales === 0 ? '' : `${day}: ${paid} of ${sales} paid, ${money(amount)}`;

/** Draws the sales of today. `act` makes a button that calls the gateway. */
export function sales(act, { rows }) {
  if (rows.length === 0) return [];
  return [
    table(
      COLUMNS,
      rows.map((it) => ({
        cells: [
          it.code,
          money(it.amount),
          it.content,
          stack(
            pill(it.status),
            it.paid === 0 || it.paid === it.amount ? (it.failure ?? '') : `${money(it.paid)} came`,
          ),
          stack(it.terminalCode, it.soldBy && `by ${it.soldBy}`),
          time(it.madeAt),
          it.isOpen
            ? act('Cancel', `/admin/v1/sales/${it.id}/cancel`, () => notice(`${it.code} is cancelled`), 'sell')
            : '',
        ],
      })),
      '',
    ),
  ];
}

/** Offers the boxes at which a cashier can sell, by their terminalCodes. */
export function offerSellers(codes) {
  const select = $('sell-box');
  const chosen = select.value;
  select.replaceChildren(...codes.map((it) => el('option', { value: it }, it)));
  if (codes.includes(chosen)) select.value = chosen;
}

/** Starts the form of a sale. `ask` sends a request to the gateway. */
export function startSellForm(ask) {
  const form = $('sell-form');
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const { amount, box, note } = Object.fromEntries(new FormData(form));
    const body = JSON.stringify({ amount: Number(amount.replaceAll(/[. ]/g, '')), terminalCode: box, note });
    const button = form.querySelector('button');
    button.disabled = true;
    try {
      const headers = { 'content-type': 'application/json' };
      const sale = await (await ask('/admin/v1/sales', { method: 'POST', headers, body })).json();
      notice(`${sale.terminalCode} shows ${money(sale.amount)}`);
      form.reset();
      $('sell-box').value = box;
    } catch (error) {
      notice(error.message);
    }
    button.disabled = false;
  });
  $('sell-csv').addEventListener('click', async () => {
    try {
      const answer = await ask('/admin/v1/sales.csv');
      const name = /filename="([^"]+)"/.exec(answer.headers.get('content-disposition') ?? '')?.[1] ?? 'sales.csv';
      const url = URL.createObjectURL(await answer.blob());
      el('a', { href: url, download: name }).click();
      URL.revokeObjectURL(url);
    } catch (error) {
      notice(error.message);
    }
  });
}
