import { $, el, notice } from './elements.js';

/** Sources have too many keys for a form that changes them. */
const KEYS = { path: 'json', label: 'Keys in JSON', example: '{ "api": { "token": "…" } }', rows: 5, required: true };

/** Returns the inputs of the form for a call. */
export const inputsOf = ({ calls }, call) =>
  call === 'change' && calls.change.length === 0 ? [KEYS] : calls[call].filter((it) => !it.noForm);

/** Returns the values of a row for these inputs. */
export const valuesOf = (inputs, row) =>
  Object.fromEntries(inputs.map(({ path }) => [path, path.split('.').reduce((at, key) => at?.[key], row) ?? '']));

/**
 * Returns the body that the values of a form make. An empty input leaves its field out of a new row, and removes it from a
 * changed one.
 */
export function bodyOf(inputs, values, isChange = false) {
  if (inputs.includes(KEYS)) return JSON.parse(values.json);
  const body = {};
  const { key, ...proof } = inputs.find((it) => it.bodies)?.bodies[values.proof] ?? {};
  const isGiven = (field) => Boolean(values[inputs.find((it) => it.field === field).path]);
  if (isChange) for (const { field } of inputs) if (!isGiven(field)) body[field] = null;
  const given = inputs.filter(({ path, field }) => isGiven(field) && values[path]);
  for (const { path, sets, bodies } of given) {
    for (const [at, value] of Object.entries({ ...sets, ...(bodies && proof) })) put(body, at, value);
    if (!bodies) put(body, path === 'key' && key ? key : path, values[path]);
  }
  return body;
}

function put(body, path, value) {
  const [first, ...rest] = path.split('.');
  const part = { ...body[first] };
  if (rest.length > 0) put(part, rest.join('.'), value);
  body[first] = rest.length === 0 ? value : part;
}

/**
 * Opens the dialog. `send` receives the values of the fields, and settles with the answer. If the answer contains a
 * secret, the dialog shows it once.
 */
export function openForm({ title, about = '', submit, inputs = [], values = {} }, send) {
  $('dialog-title').textContent = title;
  $('dialog-about').textContent = about;
  $('dialog-about').hidden = about === '';
  $('problem').textContent = '';
  $('submit').textContent = submit;
  $('submit').hidden = false;
  $('submit').disabled = false;
  $('cancel').textContent = 'Cancel';
  $('fields').replaceChildren(...inputs.map((it) => inputOf(it, values[it.path])));
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

function inputOf({ path, label, example, choices, leftOut, rows, of, secret, url, ...rest }, value = '') {
  const common = { name: path, placeholder: example ?? leftOut, required: rest.required, pattern: rest.pattern };
  const input =
    choices !== undefined
      ? el(
          'select',
          common,
          ...(leftOut === undefined ? choices : ['', ...choices]).map((it) =>
            el('option', { value: it, selected: it === value }, it || leftOut),
          ),
        )
      : rows === undefined
        ? el('input', { maxlength: 2000, type: secret ? 'password' : url ? 'url' : 'text', ...common, value })
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
