import { $, money, pill } from './elements.js';
import { ask, showMode, startLogin, watch } from './gateway.js';
import { checkSumOf, generateFields, payFields, pushFields } from './order-calls.js';
import { callbackParts, commandsOf, drawCommands, elsewhere, screen, screenNote } from './welcome-parts.js';
import { startLanguages, words } from './welcome-words.js';

const PICTURE_EVERY_MS = 1000;
/** The statuses of an order that can still be paid. */
const OPEN = ['created', 'pushed', 'shown', 'sent', 'failed'];
/** This many of the newest rows are read. The order of this page is among them. */
const ROWS = 50;

const form = $('push-form');
/** Everything that the page shows. `render` draws it. */
const state = { isWalk: false, isBusy: false };

class Refusal extends Error {
  constructor(code, reason) {
    super(code);
    this.code = code;
    this.reason = reason ?? '';
  }
}

const read = async (path) => (await ask(`/_mock${path}`)).json();
const base = () => new URL(state.about.baseUrl).pathname.replace(/\/$/, '');
const password = () => state.about.partner.password ?? (form.elements.password.value || undefined);

/** Makes one call of the service, as a partner does. Throws a Refusal. */
async function call(path, authorization, fields) {
  const headers = { authorization, 'content-type': 'application/json' };
  // The browser's own credentials are omitted. Otherwise the browser would ask for a password when this one is wrong.
  const options = { method: 'POST', credentials: 'omit', headers, body: JSON.stringify(fields) };
  const answer = await fetch(base() + path, options);
  const body = await answer.json();
  if (!answer.ok) throw new Refusal(body.message, answer.headers.get('x-paybox-reason'));
  return body;
}

async function bearer() {
  const login = new TextEncoder().encode(`${state.about.partner.username}:${password() ?? ''}`);
  const basic = `Basic ${btoa(String.fromCharCode(...login))}`;
  return `Bearer ${(await call('/api/token_generate', basic, {})).access_token}`;
}

/** Returns the order in the form. A wrong amount is sent unchanged, so that the service explains the error. */
function orderInForm() {
  const { amount, content } = form.elements;
  const number = Number(amount.value.replaceAll(/[.,\s]/g, ''));
  return { amount: Number.isNaN(number) ? amount.value : number, content: content.value, orderId: content.value };
}

function fillForm() {
  form.elements.content.value = `DH${String(Date.now() % 10_000).padStart(4, '0')}`;
}

async function push() {
  Object.assign(state, { made: undefined, pushed: undefined, status: undefined, payment: undefined });
  Object.assign(state, { callback: undefined, refusal: {}, order: orderInForm() });
  const { about, order } = state;
  const token = await bearer();
  const made = await call('/api/qr/generate-customer', token, generateFields(order, about.account));
  state.made = made;
  // The service may have put a code before the content.
  state.order = { ...order, content: made.content };
  const fields = pushFields(state.order, about.account, about.box.terminalCode, made.qrCode);
  await call('/api/tid/send-qr', token, { ...fields, checkSum: checkSumOf(password(), fields) });
  state.pushed = true;
}

async function pay() {
  const { about, order, made } = state;
  const { hasCallback } = about.partner;
  if (hasCallback) await call('/bank/api/test/transaction-callback', await bearer(), payFields(order, about.account));
  else await ask(`/_mock/orders/${made.transactionId}/pay`, { method: 'POST' });
  fillForm();
}

/** Does the work of a button, one at a time. */
async function act(step, work) {
  if (state.isBusy) return;
  state.isBusy = true;
  state.refusal = {};
  render();
  try {
    await work();
  } catch (error) {
    state.refusal = { [step]: error };
  }
  state.isBusy = false;
  await refresh().catch(() => undefined);
}

/** Reads the present state of box and order. */
async function refresh() {
  if (!state.isWalk) return;
  const { about, made } = state;
  state.box = await read(`/boxes/${about.box.terminalCode}`);
  if (made !== undefined) {
    const [orders, payments, callbacks] = await Promise.all(
      ['orders', 'payments', 'callbacks'].map((it) => read(`/${it}?limit=${ROWS}`)),
    );
    state.status = orders.find((it) => it.id === made.transactionId)?.status;
    state.payment = payments.find((it) => it.order === made.transactionId);
    state.callback = callbacks.find((it) => it.transactionId === state.payment?.transactionId);
  }
  render();
}

function render() {
  $('walk').hidden = !state.isWalk;
  $('elsewhere').hidden = state.isWalk || state.about === undefined;
  if (state.about === undefined) return;
  if (!state.isWalk) $('elsewhere').replaceChildren(...elsewhere(state.about));
  else renderSteps();
}

function renderSteps() {
  const w = words();
  const { about, box, made, order, payment, callback, pushed, isBusy, refusal = {} } = state;
  const isPaid = payment !== undefined;
  const isOpen = made !== undefined && !isPaid && OPEN.includes(state.status ?? OPEN[0]);
  const view = { ...state, isPaid, isOpen };
  drawScreen(view);
  $('screen-state').replaceChildren(pill(box.online ? w.online : w.offline, box.online ? 'good' : 'bad'));
  $('screen-note').replaceChildren(...screenNote({ box, boxPage: about.boxPage }));
  $('password-field').hidden = about.partner.password !== null;
  form.querySelector('button').disabled = isBusy;
  $('pay').disabled = isBusy || !isOpen;
  $('pay').textContent = isPaid ? w.paidPicture : isOpen ? w.pay(money(order.amount)) : w.payFirst;
  result(
    'push',
    refusal.push,
    pushed && isOpen ? (box.confirms ? w.pushed : w.pushedUnconfirmed)(box.terminalCode) : '',
  );
  result('pay', refusal.pay, isPaid ? w.paid : '');
  if (pushed) $('push-state').replaceChildren(pill(w.done, 'good'));
  $('callback-state').replaceChildren(...(callback ? [pill(w[callback.status], KIND[callback.status])] : []));
  $('callback-result').replaceChildren(...callbackParts(view));
  done('step-screen', box.online);
  done('step-push', pushed);
  done('step-pay', isPaid);
  done('step-callback', callback?.status === 'delivered');
  drawWay(view);
  const next = orderInForm();
  const all = commandsOf({ ...view, base: base(), password: password(), order: { next, last: isOpen ? order : next } });
  for (const [step, lines] of Object.entries(all)) drawCommands(step, lines);
}

const KIND = { delivered: 'good', pending: 'wait', failed: 'bad' };
const done = (id, isDone) => $(id).classList.toggle('good', isDone === true);

function drawScreen(view) {
  const drawn = screen(view);
  if ($('screen').firstElementChild?.isEqualNode(drawn) !== true) $('screen').replaceChildren(drawn);
}

/** Shows in the picture at the top how far the order has come. */
function drawWay({ pushed, isOpen, isPaid, callback }) {
  const at = (id, kind) => {
    $(id).className = kind;
  };
  at('at-shop', callback?.status === 'delivered' ? 'good' : isOpen || isPaid ? '' : 'now');
  at('at-service', isPaid ? 'good' : '');
  at('at-box', isPaid ? 'good' : pushed ? 'now' : '');
  at('at-customer', isPaid ? 'good' : isOpen ? 'now' : '');
}

function result(step, problem, text) {
  const w = words();
  const said = problem instanceof Refusal ? (w.refusals[problem.code] ?? '') : problem && w.lost;
  const code = problem instanceof Refusal ? `${w.refused(problem.code)} ${problem.reason}` : problem?.message;
  $(`${step}-result`).className = problem === undefined ? 'result' : 'result bad';
  $(`${step}-result`).textContent = problem === undefined ? text : `${said} ${code}`.trim();
  $(`${step}-state`).replaceChildren(...(text !== '' && problem === undefined ? [pill(w.done, 'good')] : []));
}

/** Draws the screen of the box again and again, as long as somebody looks at the page. */
async function followScreen() {
  const isSeen = $('gate').hidden && document.visibilityState === 'visible';
  if (state.isWalk && state.about.boxPage !== null && isSeen) {
    const { terminalCode } = state.about.box;
    const blob = await ask(`/_mock/boxes/${terminalCode}/screen.png`)
      .then((it) => it.blob())
      .catch(() => undefined);
    const picture = blob && (await dataUrl(blob));
    if (picture !== state.picture) {
      state.picture = picture;
      render();
    }
  }
  setTimeout(followScreen, PICTURE_EVERY_MS);
}

const dataUrl = (blob) =>
  new Promise((resolve) => {
    const reader = new FileReader();
    reader.addEventListener('loadend', () => resolve(reader.result ?? undefined));
    reader.readAsDataURL(blob);
  });

async function start() {
  const about = await read('/about');
  state.about = about;
  state.isWalk = about.sandbox && about.partner !== null && about.account !== null && about.box !== null;
  await refresh();
  render();
}

form.elements.amount.value = '50.000';
fillForm();
form.addEventListener('input', render);
form.addEventListener('submit', (event) => {
  event.preventDefault();
  act('push', push);
});
$('pay').addEventListener('click', () => act('pay', pay));
startLanguages(render);
startLogin();
followScreen();
// A live gateway has no first steps, and shows that to everybody.
const { mode } = await (await fetch('/healthz')).json();
if (mode === 'live') {
  state.about = { mode, sandbox: false };
  showMode(state.about);
  render();
} else {
  watch(start, (topics) => topics.length > 0 && refresh().catch(() => undefined));
}
