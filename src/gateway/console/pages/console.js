import { curls } from './begin.js';
import { calls } from './calls.js';
import { cluster, clusterCount, readCluster } from './cluster.js';
import { credits, paidNote } from './credits.js';
import { $, el, isOnlyTest, money, notice, pill, stack, table, time } from './elements.js';
import { enrolments, startEnrolForm } from './enrol.js';
import { faults, offerBoxes } from './faults.js';
import { ask, isLive, may, startLogin, watch, whoCalls } from './gateway.js';
import { attempt, drawBacklog, startResendForm } from './resend.js';
import { offerSellers, sales, startSellForm, sumOf } from './sell.js';
import { sources } from './sources.js';

const TILL = ['sales'];
const TOPICS = [
  'cluster',
  'boxes',
  'enrolments',
  'sales',
  'orders',
  'payments',
  'credits',
  'sources',
  'callbacks',
  'faults',
  'calls',
];
const PATHS = { sales: '/admin/v1/sales' };
const opened = new Set();

/** Makes a button that calls the gateway, for callers with this right. */
function act(label, path, done, right = 'administer') {
  const button = el(
    'button',
    {
      type: 'button',
      'data-may': right,
      onclick: async () => {
        button.disabled = true;
        try {
          done(await (await ask(path, { method: 'POST' })).json());
        } catch (error) {
          notice(error.message);
        }
        button.disabled = false;
      },
    },
    label,
  );
  return button;
}

const draw = {
  cluster,
  enrolments: (asking) => enrolments(ask, asking),
  faults: (all) => faults(ask, all),
  calls,
  credits,
  sources,
  sales: (today) => sales(act, today),
  boxes(boxes) {
    offerBoxes(boxes);
    $('sell-section').hidden = !boxes.some((it) => it.account !== null);
    offerSellers(boxes.filter((it) => it.account !== null).map((it) => it.terminalCode));
    if (boxes.length === 0) return [el('div', { class: 'empty' }, 'No boxes in the configuration.')];
    return boxes.map((it) =>
      el(
        'div',
        { class: 'box' },
        el('div', { class: 'name' }, it.terminalCode, it.online ? pill('online') : pill('offline')),
        el('div', { class: 'sub' }, `serial ${it.serialNumber}`),
        el(
          'div',
          { class: 'sub' },
          it.account
            ? `${it.account.bankCode} ${it.account.bankAccount} · ${it.account.userBankName}`
            : 'no linked account',
        ),
        el(
          'div',
          { class: 'sub' },
          it.online
            ? [`${it.transport} since ${time(it.since)}`, it.display, it.agentVersion].filter(Boolean).join(' · ')
            : it.hasSecret || !it.confirms
              ? 'not connected'
              : 'has no secret: it must enrol',
        ),
        it.confirms
          ? ''
          : el('div', { class: 'sub' }, `dialect ${it.dialect}: it confirms nothing, only sent is known`),
      ),
    );
  },
  orders(orders) {
    const columns = [
      ['Order', ''],
      ['Amount', 'amount'],
      ['Content', ''],
      ['Status', ''],
      ['Box', ''],
      ['Created', 'time'],
      ['', 'acts'],
    ];
    return [
      table(
        columns,
        orders.map((it) => ({
          cells: [
            stack(it.orderId || '(no orderId)', `${it.bankCode} ${it.bankAccount}`),
            money(it.amount),
            it.content,
            stack(pill(it.status), it.failure ?? paidNote(it)),
            it.box ?? '–',
            time(it.createdAt),
            it.status === 'paid'
              ? ''
              : el(
                  'span',
                  {},
                  isLive() ? '' : act('Pay', `/_mock/orders/${it.id}/pay`, (made) => notice(`paid: ${made.message}`)),
                  it.status === 'cancelled'
                    ? ''
                    : act('Cancel', `/_mock/orders/${it.id}/cancel`, () => notice('cancelled')),
                ),
          ],
        })),
        'No orders yet. Generate a QR, or push one to a box.',
      ),
    ];
  },
  payments(payments) {
    const columns = [
      ['Transaction', 'mono'],
      ['Amount', 'amount'],
      ['Content', ''],
      ['Box', ''],
      ['Callback', ''],
      ['Paid', 'time'],
    ];
    return [
      table(
        columns,
        payments.map((it) => ({
          cells: [
            stack(it.transactionId, it.orderId ? `order ${it.orderId}` : 'no order'),
            stack(`${it.transType === 'D' ? '−' : ''}${money(it.amount)}`, isOnlyTest(it) && pill('SANDBOX')),
            it.content,
            it.boxes.length === 0
              ? '–'
              : el(
                  'div',
                  {},
                  ...it.boxes.map((box) =>
                    stack(
                      box.terminalCode,
                      box.reportedAt
                        ? `${box.late ? 'listed' : 'announced'} ${time(box.reportedAt)}${box.recorded ? '' : ', not recorded'}`
                        : notReported(box),
                    ),
                  ),
                ),
            it.callback ? stack(pill(it.callback.status), it.callback.warning) : 'none',
            time(it.paidAt),
          ],
        })),
        'No payments yet. Pay an order above, or call the test callback.',
      ),
    ];
  },
  callbacks(callbacks) {
    const columns = [
      ['Transaction', 'mono'],
      ['To', ''],
      ['Status', ''],
      ['Attempts', ''],
      ['Created', 'time'],
      ['', 'acts'],
    ];
    return [
      table(
        columns,
        callbacks.map((it) => {
          const isOpen = opened.has(it.id);
          const count = it.attemptCount;
          return {
            cells: [
              it.transactionId,
              el('span', { class: 'sub mono' }, it.url),
              stack(
                pill(it.status),
                [it.warning, it.nextAttemptAt && count > 0 && `again at ${time(it.nextAttemptAt)}`]
                  .filter(Boolean)
                  .join(', '),
              ),
              el(
                'button',
                {
                  type: 'button',
                  'aria-expanded': String(isOpen),
                  onclick: () => {
                    if (!opened.delete(it.id)) opened.add(it.id);
                    refresh('callbacks');
                  },
                },
                `${isOpen ? '▾' : '▸'} ${count}`,
              ),
              time(it.createdAt),
              isOnlyTest(it)
                ? pill('SANDBOX')
                : act('Resend', `/_mock/callbacks/${it.id}/resend`, (made) => notice(`resent: ${made.status}`)),
            ],
            below: isOpen
              ? it.attempts.map((one, i) => attempt(one, count - it.attempts.length + i)).reverse()
              : undefined,
          };
        }),
        'No callbacks yet. A payment of a partner with a callback url makes one.',
      ),
    ];
  },
};

function notReported({ since, online, registered, unconfirmed, toldAt }) {
  if (unconfirmed) return toldAt ? `${unconfirmed} ${time(toldAt)}: nobody confirms it` : unconfirmed;
  const why = online ? 'the box is online' : registered ? 'the box is offline' : 'the box is not in the configuration';
  return `not reported since ${time(since)}: ${why}`;
}

/** A list without a limit in its request has this many rows. There may be more. */
const PAGE_ROWS = 50;
const pageCount = (rows, counted = rows) => (rows.length < PAGE_ROWS ? counted.length || '' : `newest ${PAGE_ROWS}`);

const COUNTS = {
  cluster: clusterCount,
  sales: sumOf,
  boxes: (boxes) => `${boxes.filter((it) => it.online).length} of ${boxes.length} online`,
  payments: (payments) =>
    pageCount(
      payments,
      payments.filter((it) => !isOnlyTest(it)),
    ),
  faults: ({ standing }) => (standing.length === 0 ? '' : `${standing.length} ordered`),
};

const asked = new Map();
/** Draws a list again. Several simultaneous changes draw it only once. */
function refresh(topic) {
  if (asked.has(topic)) return;
  asked.set(
    topic,
    setTimeout(async () => {
      asked.delete(topic);
      try {
        const rows =
          topic === 'cluster' ? await readCluster() : await (await ask(PATHS[topic] ?? `/_mock/${topic}`)).json();
        $(topic).replaceChildren(...draw[topic](rows));
        if (topic === 'callbacks') drawBacklog(await (await ask('/_mock/callbacks/backlog')).json());
        else $(`${topic}-count`).textContent = COUNTS[topic]?.(rows) ?? pageCount(rows);
      } catch (error) {
        $('live').title = error.message;
      }
    }, 60),
  );
}

async function start() {
  if (!may('look')) return startTill();
  curls(await (await ask('/_mock/about')).json());
  const orders = await (await ask('/_mock/orders?limit=1')).json();
  if (orders.length === 0) $('begin').open = true;
  TOPICS.forEach(refresh);
}

/** Starts the page of a cashier: he has the form, and the sales of his boxes. */
function startTill() {
  $('sell-section').hidden = false;
  offerSellers(whoCalls().tills);
  TILL.forEach(refresh);
}

function changed(lines) {
  const topics = lines.filter((it) => (may('look') ? TOPICS : TILL).includes(it));
  topics.forEach(refresh);
  if (topics.includes('orders')) refresh('sales');
  if (topics.includes('boxes') && !$('cluster-section').hidden) refresh('cluster');
}

for (const details of document.querySelectorAll('details.begin')) {
  details.addEventListener('toggle', () => {
    details.querySelector('.fold').textContent = details.open ? 'hide' : 'show';
  });
}
startLogin();
startEnrolForm(ask);
startResendForm(ask);
startSellForm(ask);
watch(start, changed, 'list-sales');
