import { command } from './begin.js';
import { $, el, pill, time } from './elements.js';
import { hasToken } from './gateway.js';
import { orderCommands, quoted } from './order-calls.js';
import { words } from './welcome-words.js';

const UP = 'npx --no -- paybox up';
/** An example of a partner's own address. */
const OWN_ADDRESS = 'http://127.0.0.1:3000/bank/api/transaction-sync';

const copyable = ([title, text]) => command(title, text, { copy: words().copy, copied: words().copied });

/** Draws the commands of a step, if they have changed. On a small screen they are folded at first. */
export function drawCommands(step, lines) {
  const place = $(`${step}-commands`);
  const key = JSON.stringify([lines, words().commands]);
  if (place.dataset.drawn === key) return;
  place.dataset.drawn = key;
  const open = place.querySelector('details')?.open ?? matchMedia('(min-width: 861px)').matches;
  const hint = step === 'push' ? el('p', { class: 'hint' }, words().shellHint) : '';
  const summary = el('summary', {}, words().commands);
  place.replaceChildren(el('details', { class: 'commands', open }, summary, hint, ...lines.map(copyable)));
}

/** Returns the commands of all steps, with the values of this gateway. */
export function commandsOf({ about, base, password, order, made, callback }) {
  const w = words();
  const { terminalCode } = about.box;
  const { username } = about.partner;
  const baseUrl = location.origin + base;
  const of = (it) => orderCommands({ baseUrl, username, password, account: about.account, terminalCode, order: it });
  const [next, last] = [of(order.next), of(order.last ?? order.next)];
  const admin = hasToken() ? ' -H "authorization: Bearer $ADMIN_TOKEN"' : '';
  const mock = (path, options = '') => `curl -s${options} ${quoted(`${location.origin}/_mock${path}`)}${admin}`;
  const byOrder = mock(`/orders/${made?.transactionId ?? 'ORDER'}/pay`, ' -X POST');
  const body = callback?.attempts.at(-1)?.request.body;
  const byHand = `curl -s ${OWN_ADDRESS} -H 'content-type: application/json' \\\n  -d ${quoted(body ?? '')}`;
  return {
    screen: [[w.boxCommand, mock(`/boxes/${terminalCode}`)]],
    push: [
      [w.tokenCommand, next.token],
      [w.generateCommand, next.generate],
      [w.sendCommand(terminalCode), next.sendQr],
    ],
    pay: [[w.payCommand, about.partner.hasCallback ? last.pay : byOrder]],
    callback: [[w.listCommand, mock('/callbacks?limit=1')], ...(body === undefined ? [] : [[w.playCommand, byHand]])],
  };
}

/** Draws a text in place of the steps, at a gateway where they are not possible. */
export function elsewhere({ mode, sandbox }) {
  const w = words();
  const isLive = mode === 'live' || !sandbox;
  const [title, text] = isLive ? [w.forSandboxes, w.liveText] : [w.emptyTitle, w.emptyText];
  return [el('h2', {}, title), el('p', { class: 'hint' }, text), copyable([w.demoCommand, UP])];
}

/** Draws the screen of the box as a picture, or else the QR of the order as long as it can be paid. */
export function screen({ picture, made, isOpen, isPaid }) {
  const w = words();
  if (picture !== undefined) return el('img', { src: picture, alt: w.screenAlt });
  if (isPaid) return el('p', { class: 'tick' }, `✓ ${w.paidPicture}`);
  if (isOpen) return el('img', { src: `/qr/${made.transactionRefId}`, alt: w.qrAlt });
  return el('p', {}, w.noPicture);
}

/** Draws the part below the screen: how to get a box, or the link to the box's own page. */
export function screenNote({ box, boxPage }) {
  const w = words();
  if (!box.online) return [el('p', { class: 'hint' }, w.noBox), copyable([w.demoCommand, UP])];
  if (boxPage === null) return [];
  // The link uses the name by which this page was reached. The demo opens both to other machines, or neither.
  const page = Object.assign(new URL(boxPage), { hostname: location.hostname });
  return [el('a', { href: page.href, target: '_blank', rel: 'noopener' }, w.boxPage)];
}

/** Draws the callback of a partner with its answer, or how to set the address for it. */
export function callbackParts({ about, isPaid, callback }) {
  const w = words();
  if (!about.partner.hasCallback) {
    const file = `partners:\n  - username: ${about.partner.username}\n    callback:\n      url: ${OWN_ADDRESS}`;
    return [
      el('p', { class: 'hint' }, w.noCallback),
      copyable([w.demoCommand, `${UP} --callback-url ${OWN_ADDRESS}`]),
      copyable([w.fileCommand, file]),
    ];
  }
  if (!isPaid) return [el('p', { class: 'hint' }, w.callbackWaits)];
  return (callback?.attempts ?? []).map(attempt);
}

function attempt({ request, response, error, startedAt, durationMs }) {
  const w = words();
  const headers = Object.entries(request.headers).map(([name, value]) => `${name}: ${value}`);
  const isTaken = response !== null && response.status >= 200 && response.status < 300;
  return el(
    'div',
    { class: 'attempt' },
    el('div', { class: 'head' }, el('strong', {}, `${w.sent} ${time(startedAt)}`)),
    el('pre', {}, `${request.method} ${request.url}\n${headers.join('\n')}\n\n${request.body}`),
    el(
      'div',
      { class: 'head' },
      el('strong', {}, w.answered),
      response ? pill(`HTTP ${response.status}`, isTaken ? 'good' : 'bad') : pill(error ?? w.noAnswer, 'bad'),
      el('span', { class: 'sub' }, `${durationMs} ms`),
    ),
    response ? el('pre', {}, response.body || w.emptyAnswer) : '',
  );
}
