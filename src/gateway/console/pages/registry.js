import { $, el, notice, pill, stack, table } from './elements.js';
import { ask, may, startLogin, watch } from './gateway.js';
import { bodyOf, inputsOf, openForm, valuesOf } from './registry-forms.js';
import { RESOURCES } from './registry-table.js';
import { NEW_TOKEN, revokeButton, TOKENS } from './tokens.js';

const API = '/admin/v1';
const PAGE_ROWS = 25;
const JSON_TYPE = { 'content-type': 'application/json' };

const day = (iso) => (iso ? new Date(iso).toLocaleString('en-GB') : '–');
const state = (it) =>
  el(
    'div',
    { class: 'states' },
    it.disabled ? pill('disabled', 'bad') : pill('enabled', 'good'),
    it.managed === 'file' ? pill('file') : '',
  );

/** The lists: the name of a row, its columns, and a text about it. */
const LISTS = {
  partners: {
    ...RESOURCES.partners,
    columns: [
      ['Partner', ''],
      ['Callbacks to', ''],
      ['State', ''],
      ['', 'acts'],
    ],
    cells: (it) => [it.username, callback(it.callback), state(it)],
  },
  accounts: {
    ...RESOURCES.accounts,
    columns: [
      ['Account', 'mono'],
      ['Holder', ''],
      ['Partner', ''],
      ['State', ''],
      ['', 'acts'],
    ],
    cells: (it) => [
      stack(it.bankAccount, it.bankCode),
      stack(it.userBankName, it.contentPrefix && `contentPrefix: ${it.contentPrefix}`),
      it.partner ?? '–',
      state(it),
    ],
  },
  boxes: {
    ...RESOURCES.boxes,
    columns: [
      ['Box', 'mono'],
      ['Account', 'mono'],
      ['Link', ''],
      ['State', ''],
      ['', 'acts'],
    ],
    cells: (it) => [
      stack(it.terminalCode, `serial ${it.serialNumber}`),
      it.account ?? '–',
      it.online
        ? pill('online')
        : it.hasSecret || it.disabled || !it.enrols
          ? pill('offline')
          : pill('must enrol', 'wait'),
      state(it),
    ],
  },
  sources: {
    ...RESOURCES.sources,
    columns: [
      ['Source', 'mono'],
      ['Proof', ''],
      ['Last webhook', 'time'],
      ['Agrees up to', 'time'],
      ['State', ''],
      ['', 'acts'],
    ],
    cells: (it) => [
      stack(it.name, it.hook),
      stack(it.kind, it.options.auth?.kind ?? ''),
      day(it.lastWebhook),
      it.list ? stack(day(it.agreedUpTo), it.problem) : 'no list',
      state(it),
    ],
  },
  tokens: TOKENS,
  audit: {
    about: 'Who changed what, newest first: the name of the token, and the address that it was used from.',
    columns: [
      ['When', 'time'],
      ['Who', ''],
      ['What', ''],
      ['Row', 'mono'],
      ['Detail', ''],
    ],
    cells: (it) => [
      day(it.at),
      stack(it.who, it.address),
      it.what,
      it.target,
      el('span', { class: 'sub mono' }, said(it.detail)),
    ],
  },
};

const said = (detail) => (Object.keys(detail).length === 0 ? '' : JSON.stringify(detail));

function callback(it) {
  if (it === null) return 'none';
  const how = [it.auth === 'none' ? '' : it.auth, it.signed ? 'signed' : '', it.payload === 'public' ? '' : it.payload];
  return stack(el('span', { class: 'mono' }, it.url), how.filter(Boolean).join(' · '));
}

let shown = 'boxes';
let after = '';
let last = '';

const send = async (method, path, body, row) => {
  const seen = row === undefined ? {} : { 'if-match': `"${row.changedAt}"` };
  const answer = await ask(`${API}/${path}`, {
    method,
    headers: { ...(body === undefined ? {} : JSON_TYPE), ...seen },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return answer.json();
};

/** Makes the buttons of a row that the store manages, for admins. */
function acts(it) {
  if (it.managed === 'file' || !may('administer')) return '';
  if (shown === 'tokens') return revokeButton(it, (path) => send('DELETE', path), refresh);
  const resource = RESOURCES[shown];
  const { key, one, hint, disabled, rotate, linkTo } = resource;
  const name = it[key];
  const path = `${shown}/${encodeURIComponent(name)}`;
  const form = (label, more, method, end) => {
    const open = () =>
      openForm({ title: `${label}: ${name}`, submit: label, ...more }, async (given) => {
        const body = bodyOf(more.inputs ?? [], given, method === 'PATCH');
        const answer = await send(method, `${path}${end}`, method === 'DELETE' ? undefined : body, it);
        notice(`${name}: done`);
        refresh();
        return answer;
      });
    return el('button', { type: 'button', onclick: open }, label);
  };
  const filled = (call) => {
    const inputs = inputsOf(resource, call);
    return { inputs, values: valuesOf(inputs, it) };
  };
  const to = it[linkTo];
  return el(
    'span',
    {},
    form('Change', { about: hint, ...filled('change') }, 'PATCH', ''),
    linkTo ? form('Link', filled('link'), 'POST', '/link') : '',
    to ? form('Unlink', { about: `From ${to}.` }, 'POST', '/unlink') : '',
    rotate ? form('Rotate', { about: rotate, inputs: inputsOf(resource, 'rotate') }, 'POST', '/rotate') : '',
    it.disabled ? form('Enable', {}, 'POST', '/enable') : form('Disable', { about: disabled }, 'POST', '/disable'),
    form('Remove', { about: `This deletes the ${one}. The list of changes still names it.` }, 'DELETE', ''),
  );
}

async function draw() {
  const { columns, cells, key, about } = LISTS[shown];
  const form = $('search').elements;
  // All tokens are on one page.
  const query = new URLSearchParams(shown === 'tokens' ? {} : { limit: PAGE_ROWS });
  if (shown === 'audit') {
    if (after !== '') query.set('before', after);
    if (form.q.value !== '') query.set('target', form.q.value);
  } else {
    if (after !== '') query.set('after', after);
    if (form.q.value !== '') query.set('q', form.q.value);
    if (shown === 'boxes' && form.serial.value !== '') query.set('serial', form.serial.value);
  }
  const rows = await (await ask(`${API}/${shown}?${query}`)).json();
  last = String(rows.at(-1)?.[shown === 'audit' ? 'seq' : query.has('serial') ? 'serialNumber' : key] ?? '');
  $('about').textContent = about;
  $('rows').replaceChildren(
    table(
      columns,
      rows.map((it) => ({ cells: shown === 'audit' ? cells(it) : [...cells(it), acts(it)] })),
      after === '' ? 'Nothing here.' : 'Nothing more.',
    ),
  );
  $('first').disabled = after === '';
  $('next').disabled = shown === 'tokens' || rows.length < PAGE_ROWS;
}

const refresh = () => draw().catch((error) => notice(error.message));

function open(name) {
  shown = name in LISTS ? name : 'boxes';
  after = '';
  const { q, serial } = $('search').elements;
  q.value = '';
  serial.value = '';
  serial.hidden = shown !== 'boxes';
  q.placeholder = shown === 'audit' ? 'row, as boxes/VVB000001' : `${LISTS[shown].key} begins with`;
  q.setAttribute('aria-label', q.placeholder);
  for (const it of $('search').querySelectorAll('input:not([name=serial]), button:not([id])'))
    it.hidden = shown === 'tokens';
  $('add').hidden = shown === 'audit';
  $('add').textContent = `Add a ${LISTS[shown].one}`.replace('a account', 'an account');
  for (const tab of $('tabs').children)
    tab.setAttribute('aria-current', String(tab.textContent.toLowerCase() === shown));
}

$('tabs').append(
  ...Object.keys(LISTS).map((name) => {
    const right = name === 'tokens' ? 'administer' : 'look';
    return el('a', { href: `#${name}`, 'data-may': right }, name[0].toUpperCase() + name.slice(1));
  }),
);
addEventListener('hashchange', () => {
  open(location.hash.slice(1));
  refresh();
});
$('search').addEventListener('submit', (event) => {
  event.preventDefault();
  after = '';
  refresh();
});
$('add').addEventListener('click', () => {
  const inputs = shown === 'tokens' ? NEW_TOKEN.inputs : inputsOf(RESOURCES[shown], 'add');
  const body = shown === 'tokens' ? NEW_TOKEN.body : (values) => bodyOf(inputs, values);
  const list = shown;
  openForm({ title: $('add').textContent, submit: 'Add', inputs }, async (values) => {
    const answer = await send('POST', list, body(values));
    notice('added');
    refresh();
    return answer;
  });
});
$('first').addEventListener('click', () => {
  after = '';
  refresh();
});
$('next').addEventListener('click', () => {
  after = last;
  refresh();
});
$('cancel').addEventListener('click', () => $('dialog').close());
// A new secret must not stay in a closed dialog.
$('dialog').addEventListener('close', () => $('fields').replaceChildren());
startLogin();
open(location.hash.slice(1));
watch(draw, (topics) => {
  // The list is not drawn while somebody fills in a form.
  if (!$('dialog').open && topics.some((it) => ['registry', 'boxes', 'sources'].includes(it))) refresh();
});
