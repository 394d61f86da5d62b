const $ = (id) => document.getElementById(id);
const TOPICS = ['boxes', 'orders', 'payments', 'callbacks'];
const opened = new Set();
let token = sessionStorage.getItem('token') ?? '';

/** An element; text always goes in as text, because a payer wrote some of it. */
function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === 'onclick') made.addEventListener('click', value);
    else if (value === true) made.setAttribute(key, '');
    else if (value !== false && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((it) => it !== null && it !== undefined && it !== ''));
  return made;
}

async function ask(path, options = {}) {
  const headers = token === '' ? {} : { authorization: `Bearer ${token}` };
  const answer = await fetch(path, { ...options, headers });
  $('gate').hidden = answer.status !== 401;
  if (answer.status === 401) throw new Error('an admin token is needed');
  if (answer.ok) return answer;
  const { message } = await answer.json().catch(() => ({ message: `HTTP ${answer.status}` }));
  throw new Error(`refused: ${message}`);
}

const money = (amount) => `${amount.toLocaleString('vi-VN')} ₫`;
const time = (iso) => (iso === null ? '–' : new Date(iso).toLocaleTimeString('en-GB'));
const KIND = {
  shown: 'live',
  pushed: 'wait',
  paid: 'good',
  delivered: 'good',
  online: 'good',
  pending: 'wait',
  failed: 'bad',
};
const pill = (text, kind = KIND[text] ?? '') => el('span', { class: `pill ${kind}` }, text);
const stack = (first, second) => el('div', {}, el('div', {}, first), second ? el('div', { class: 'sub' }, second) : '');

function notice(text) {
  $('notice').textContent = text;
  $('notice').classList.add('on');
  clearTimeout(notice.timer);
  notice.timer = setTimeout(() => $('notice').classList.remove('on'), 3500);
}

function act(label, path, done) {
  const button = el(
    'button',
    {
      type: 'button',
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

function table(columns, rows, emptyText) {
  if (rows.length === 0) return el('div', { class: 'empty' }, emptyText);
  const head = columns.map(([name, kind]) => el('th', { class: kind }, name));
  const body = rows.flatMap(({ cells, below }) => {
    const row = el('tr', { class: 'row' }, ...cells.map((cell, i) => el('td', { class: columns[i][1] }, cell)));
    return below ? [row, el('tr', { class: 'attempts' }, el('td', { colspan: columns.length }, ...below))] : [row];
  });
  return el('table', {}, el('thead', {}, el('tr', {}, ...head)), el('tbody', {}, ...body));
}

const draw = {
  boxes(boxes) {
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
          it.online ? `${it.transport} since ${time(it.since)} · ${it.display} · ${it.agentVersion}` : 'not connected',
        ),
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
            stack(pill(it.status), it.failure),
            it.box ?? '–',
            time(it.createdAt),
            it.status === 'paid'
              ? ''
              : el(
                  'span',
                  {},
                  act('Pay', `/_mock/orders/${it.id}/pay`, (made) => notice(`paid: ${made.message}`)),
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
            `${it.transType === 'D' ? '−' : ''}${money(it.amount)}`,
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
                        ? `announced ${time(box.reportedAt)}${box.recorded ? '' : ', not recorded'}`
                        : 'not yet announced',
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
          const count = it.attempts.length;
          return {
            cells: [
              it.transactionId,
              el('span', { class: 'sub mono' }, it.url),
              stack(
                pill(it.status),
                it.warning ?? (it.nextAttemptAt && count > 0 ? `again at ${time(it.nextAttemptAt)}` : ''),
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
              act('Resend', `/_mock/callbacks/${it.id}/resend`, (made) => notice(`resent: ${made.status}`)),
            ],
            below: isOpen ? it.attempts.map(attempt).reverse() : undefined,
          };
        }),
        'No callbacks yet. A payment of a partner with a callback url makes one.',
      ),
    ];
  },
};

function attempt(it, index) {
  const ok = it.response !== null && it.response.status >= 200 && it.response.status <= 299;
  const headers = Object.entries(it.request.headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n');
  return el(
    'div',
    { class: 'attempt' },
    el(
      'div',
      { class: 'head' },
      el('strong', {}, `Attempt ${index + 1}`),
      it.response ? pill(`HTTP ${it.response.status}`, ok ? 'good' : 'bad') : pill(it.error ?? 'no answer', 'bad'),
      el('span', { class: 'sub' }, `${time(it.startedAt)} · ${it.durationMs} ms${it.byHand ? ' · by hand' : ''}`),
    ),
    el('pre', {}, `${it.request.method} ${it.request.url}\n${headers}\n\n${it.request.body}`),
    it.response ? el('pre', {}, it.response.body || '(an empty answer)') : '',
  );
}

const asked = new Map();
/** Draws a list anew; changes that come in a burst are drawn once. */
function refresh(topic) {
  if (asked.has(topic)) return;
  asked.set(
    topic,
    setTimeout(async () => {
      asked.delete(topic);
      try {
        const rows = await (await ask(`/_mock/${topic}`)).json();
        $(topic).replaceChildren(...draw[topic](rows));
        $(`${topic}-count`).textContent =
          topic === 'boxes' ? `${rows.filter((it) => it.online).length} of ${rows.length} online` : rows.length || '';
      } catch (error) {
        $('live').title = error.message;
      }
    }, 60),
  );
}

function curls({ baseUrl, partner, account, box }) {
  $('base').textContent = baseUrl;
  const user = partner?.username ?? 'PARTNER';
  const password = partner?.password ?? 'PASSWORD';
  const to = account ?? { bankAccount: 'ACCOUNT', bankCode: 'MB', userBankName: 'NAME' };
  const json = '-H \'content-type: application/json\' -H "authorization: Bearer $TOKEN"';
  const order = {
    amount: 50000,
    content: 'DH001',
    bankAccount: to.bankAccount,
    bankCode: to.bankCode,
    userBankName: to.userBankName,
    transType: 'C',
    orderId: 'DH001',
    qrType: 0,
  };
  const sum = `printf '%s' '${password}${to.bankAccount}50000${to.bankCode}' | md5sum | cut -c1-32`;
  const lines = [
    [
      'A token, good for 300 seconds',
      `TOKEN=$(curl -s -X POST -u '${user}:${password}' ${baseUrl}/api/token_generate | sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/')`,
    ],
    [
      'A QR for an order',
      `QR=$(curl -s ${baseUrl}/api/qr/generate-customer ${json} \\\n  -d '${JSON.stringify(order)}' | sed 's/.*"qrCode":"\\([^"]*\\)".*/\\1/'); echo "$QR"`,
    ],
    [
      `Onto the box ${box?.terminalCode ?? ''}`,
      `curl -s ${baseUrl}/api/tid/send-qr ${json} \\\n  -d "{\\"bankAccount\\":\\"${to.bankAccount}\\",\\"bankCode\\":\\"${to.bankCode}\\",\\"amount\\":\\"50000\\",\\"content\\":\\"DH001\\",\\"qrCode\\":\\"$QR\\",\\"terminalCode\\":\\"${box?.terminalCode ?? 'VVB…'}\\",\\"orderId\\":\\"DH001\\",\\"checkSum\\":\\"$(${sum})\\"}"`,
    ],
    [
      'The payer pays',
      `curl -s ${baseUrl}/bank/api/test/transaction-callback ${json} \\\n  -d '${JSON.stringify({ bankAccount: to.bankAccount, content: 'DH001', amount: 50000, transType: 'C' })}'`,
    ],
  ];
  $('curls').replaceChildren(
    ...lines.map(([title, line]) =>
      el(
        'div',
        { class: 'curl' },
        el('p', {}, title),
        el(
          'button',
          { type: 'button', onclick: () => navigator.clipboard.writeText(line).then(() => notice('copied')) },
          'Copy',
        ),
        el('pre', {}, line),
      ),
    ),
  );
}

async function start() {
  curls(await (await ask('/_mock/about')).json());
  const orders = await (await ask('/_mock/orders?limit=1')).json();
  if (orders.length === 0) $('begin').open = true;
}

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
/** Reads the events itself: an EventSource could not send the admin token. */
async function watch() {
  for (;;) {
    try {
      const reader = (await ask('/_mock/events')).body.pipeThrough(new TextDecoderStream()).getReader();
      $('live').textContent = 'live';
      $('live').className = 'on';
      await start();
      TOPICS.forEach(refresh);
      for (let rest = ''; ; ) {
        const { value, done } = await reader.read();
        if (done) break;
        const lines = (rest + value).split('\n');
        rest = lines.pop();
        for (const line of lines) if (TOPICS.includes(line.slice(6))) refresh(line.slice(6));
      }
    } catch (error) {
      $('live').title = error.message;
    }
    $('live').textContent = 'not connected';
    $('live').className = '';
    await wait(1000);
  }
}

$('begin').addEventListener('toggle', () => {
  $('begin').querySelector('.fold').textContent = $('begin').open ? 'hide' : 'show';
});
$('login').addEventListener('submit', (event) => {
  event.preventDefault();
  token = new FormData($('login')).get('token');
  sessionStorage.setItem('token', token);
});
watch();
