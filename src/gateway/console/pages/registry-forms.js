import { $, el, notice } from './elements.js';

const field = (name, label, more = {}) => ({ name, label, ...more });
const secret = (name, label, more = {}) => field(name, label, { type: 'password', ...more });
const select = (name, label, options) => field(name, label, { options });

/** Returns the callback of a partner. Undefined without an address. */
const callbackOf = ({ url, bearer, signingSecret, payload }) =>
  url === ''
    ? undefined
    : {
        url,
        ...(bearer === '' ? {} : { auth: { kind: 'bearer', token: bearer } }),
        ...(signingSecret === '' ? {} : { signingSecret }),
        payload,
      };

const CALLBACK = [
  field('url', 'Callback address', { type: 'url', placeholder: 'of the shop, with HTTPS' }),
  secret('bearer', 'Bearer token of its callbacks, if it wants one'),
  secret('signingSecret', 'Signing secret, if it checks signatures', { placeholder: 'whsec_…' }),
  select('payload', 'Form of callbacks', ['public', 'camel', 'strings']),
];
const PREFIX = select('contentPrefix', 'Before contents', ['', 'none', 'code', 'vietqr']);
const BANK = [
  field('bankCode', 'Bank', { placeholder: 'MB', required: true }),
  field('userBankName', 'Holder', { placeholder: 'NGUYEN VAN A', required: true }),
];

/** Returns the keys for the proof that a source sends, by kind and proof. */
const PROOFS = {
  'sepay hmac': ({ key }) => ({ kind: 'sepay', auth: { kind: 'hmac', secret: key } }),
  'sepay apikey': ({ key }) => ({ kind: 'sepay', auth: { kind: 'apikey', key } }),
  'casso signature': ({ key }) => ({ kind: 'casso', auth: { kind: 'signature', key } }),
  'casso secure-token': ({ key }) => ({ kind: 'casso', auth: { kind: 'secure-token', token: key } }),
  payos: ({ key, clientId = '', apiKey = '' }) => ({ kind: 'payos', checksumKey: key, ...given({ clientId, apiKey }) }),
  vietqr: ({ key, username }) => ({ kind: 'vietqr', username, password: key }),
};
const withList = (made, { apiToken = '' }) => (apiToken === '' ? made : { ...made, api: { token: apiToken } });

const given = (values) => Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ''));

/** The forms that add a row: their fields, and the body that they make. */
export const ADD = {
  partners: {
    fields: [
      field('username', 'User name', { required: true }),
      secret('password', 'Password', { placeholder: 'a new one is made' }),
      ...CALLBACK,
    ],
    body: ({ username, password, ...rest }) => ({ username, ...given({ password }), callback: callbackOf(rest) }),
  },
  accounts: {
    fields: [field('bankAccount', 'Account number', { required: true }), ...BANK, field('partner', 'Partner'), PREFIX],
    body: given,
  },
  boxes: {
    fields: [
      field('terminalCode', 'terminalCode', { placeholder: 'VVB000001', required: true }),
      field('serialNumber', 'serialNumber', { placeholder: 'VVB900001', required: true }),
      field('account', 'Account that it is linked to'),
    ],
    body: given,
  },
  sources: {
    fields: [
      field('name', 'Name, in the address /hooks/{name}', { placeholder: 'till', required: true }),
      select('proof', 'Kind and proof', Object.keys(PROOFS)),
      secret('key', 'Its key, secret, token or password', { required: true }),
      field('username', 'User name', { required: true, of: ['vietqr'] }),
      secret('apiToken', 'Token of its list, for catch-up', { of: ['sepay', 'casso'] }),
      field('clientId', 'Client id, for catch-up', { of: ['payos'] }),
      secret('apiKey', 'API key, for catch-up', { of: ['payos'] }),
    ],
    body: ({ name, proof, ...rest }) => ({ name, ...withList(PROOFS[proof](rest), rest) }),
  },
};

/** The forms that change a row. An empty field changes nothing. */
export const CHANGE = {
  partners: {
    about: 'Replaces address and secrets of its callbacks. Without an address, it gets no more callbacks.',
    fields: CALLBACK,
    values: ({ callback }) => ({ url: callback?.url ?? '', payload: callback?.payload ?? 'public' }),
    body: (values) => ({ callback: callbackOf(values) ?? null }),
  },
  accounts: {
    fields: [...BANK, PREFIX],
    values: ({ bankCode, userBankName, contentPrefix }) => ({
      bankCode,
      userBankName,
      contentPrefix: contentPrefix ?? '',
    }),
    body: ({ contentPrefix, ...rest }) => ({ ...rest, contentPrefix: contentPrefix === '' ? null : contentPrefix }),
  },
  boxes: {
    about: 'Another serialNumber is another box: it has to enrol.',
    fields: [field('serialNumber', 'serialNumber', { required: true })],
    values: ({ serialNumber }) => ({ serialNumber }),
    body: given,
  },
  sources: {
    about: 'Keys of its kind in JSON. Each replaces the whole key, and null removes it. Change its secret with Rotate.',
    fields: [field('json', 'Keys', { rows: 5, placeholder: '{ "api": { "token": "…" } }', required: true })],
    values: () => ({}),
    body: ({ json }) => JSON.parse(json),
  },
};

/** The forms that link a row. */
export const LINK = {
  accounts: { field: field('partner', 'Partner', { required: true }), of: ({ partner }) => partner },
  boxes: { field: field('account', 'Account', { required: true }), of: ({ account }) => account },
};

/** The forms that give a row a new secret. */
export const ROTATE = {
  partners: {
    about: 'The old password is refused at once.',
    fields: [secret('password', 'New password', { placeholder: 'one is made' })],
  },
  boxes: {
    about:
      'The box loses its session and its QR. A box with its own secret gets a new one. Any other box must enrol again.',
    fields: [],
  },
  sources: {
    about: 'Casso: the previous key still works until the next change. Others: set the new key at the provider now.',
    fields: [secret('key', 'New key', { placeholder: 'one is made, but for casso V2 and payos' })],
  },
};

/**
 * Opens the dialog. `send` receives the values of the fields, and settles with the answer. If the answer contains a
 * secret, the dialog shows it once.
 */
export function openForm({ title, about = '', submit, fields = [], values = {} }, send) {
  $('dialog-title').textContent = title;
  $('dialog-about').textContent = about;
  $('dialog-about').hidden = about === '';
  $('problem').textContent = '';
  $('submit').textContent = submit;
  $('submit').hidden = false;
  $('submit').disabled = false;
  $('cancel').textContent = 'Cancel';
  $('fields').replaceChildren(...fields.map((it) => inputOf(it, values[it.name])));
  $('form').onchange = hideOthers;
  hideOthers();
  $('form').onsubmit = async (event) => {
    event.preventDefault();
    $('submit').disabled = true;
    try {
      showMade(await send(Object.fromEntries(new FormData($('form')))));
    } catch (error) {
      $('problem').textContent = error.message;
    }
    $('submit').disabled = false;
  };
  $('dialog').showModal();
}

/** Shows only the fields of the chosen kind. A disabled field is not sent. */
function hideOthers() {
  const { proof, role } = $('form').elements;
  const chosen = ((proof ?? role)?.value ?? '').split(' ')[0];
  for (const label of $('fields').querySelectorAll('[data-of]')) {
    label.hidden = !label.dataset.of.split(' ').includes(chosen);
    label.querySelector('input').disabled = label.hidden;
  }
}

function inputOf({ name, label, options, rows, of, ...attributes }, value) {
  const common = { name, ...attributes };
  const input =
    options !== undefined
      ? el(
          'select',
          common,
          ...options.map((it) => el('option', { value: it, selected: it === value }, it || 'as the gateway')),
        )
      : rows === undefined
        ? el('input', { maxlength: 2000, ...common, value })
        : el('textarea', { rows, maxlength: 4000, ...common });
  return el('label', { 'data-of': of?.join(' ') }, el('span', { class: 'sub' }, label), input);
}

/** Closes the dialog. If a secret was created, the dialog stays open and shows it. */
function showMade(answer) {
  const made = ['password', 'secret', 'key', 'token'].find((name) => answer[name] !== undefined);
  if (made === undefined) return $('dialog').close();
  const copy = () => navigator.clipboard.writeText(answer[made]).then(() => notice('copied'));
  $('dialog-about').hidden = false;
  $('dialog-about').textContent = `Its new ${made}, shown this once: nobody can read it later.`;
  $('fields').replaceChildren(
    el('pre', { class: 'made' }, answer[made]),
    el('button', { type: 'button', onclick: copy }, 'Copy'),
  );
  $('submit').hidden = true;
  $('cancel').textContent = 'Close';
}
