import { $, notice } from './elements.js';

let token = sessionStorage.getItem('token') ?? '';
/** The caller and his rights. Undefined until the gateway has answered. */
let caller;
/** Called when somebody has typed a token. */
let onTyped = () => undefined;

/** Sends a request to the gateway. If a token is needed, shows only the form for it. Throws with the reason. */
export async function ask(path, options = {}) {
  const headers = { ...options.headers, ...(token === '' ? {} : { authorization: `Bearer ${token}` }) };
  const answer = await fetch(path, { ...options, headers });
  if (answer.status === 401) {
    $('gate').hidden = false;
    document.body.dataset.may = '';
    throw new Error('a token is needed');
  }
  if (answer.ok) return answer;
  const { message, reason } = await answer.json().catch(() => ({ message: `HTTP ${answer.status}` }));
  throw new Error(`refused: ${reason ?? message}`);
}

/** Returns whether calls of the page carry a token. */
export const hasToken = () => token !== '';

/** Returns whether the caller has a right. Must be called only after `watch` has opened. */
export const may = (right) => caller.rights.includes(right);

/** Returns the caller, as `/admin/v1/caller` answers him. Must be called only after `watch` has opened. */
export const whoCalls = () => caller;

function keep(text) {
  token = text;
  sessionStorage.setItem('token', token);
}

/**
 * Starts the form for a token, and the button that deletes it. With an empty token the page calls without one, and the
 * gateway decides what is allowed.
 */
export function startLogin() {
  $('login').addEventListener('submit', (event) => {
    event.preventDefault();
    keep(new FormData($('login')).get('token'));
    $('login').reset();
    onTyped();
  });
  $('leave')?.addEventListener('click', () => {
    keep('');
    location.reload();
  });
}

/** Returns whether the gateway handles real money. Must be called only after `showMode`. */
export const isLive = () => $('mode').className === 'live';

/** Shows whether the gateway is live or a sandbox. */
export function showMode({ mode, sandbox }) {
  $('mode').textContent = mode === 'live' ? 'LIVE' : sandbox ? 'SANDBOX' : '';
  $('mode').className = mode;
}

/** Asks the gateway who calls. The style sheet hides elements whose `data-may` names a right that the caller lacks. */
async function enter(needed) {
  caller = await (await ask('/admin/v1/caller')).json();
  showMode(caller);
  if ($('who')) $('who').textContent = `${caller.name} · ${caller.role}`;
  if ($('leave')) $('leave').hidden = !hasToken();
  document.body.dataset.may = caller.rights.join(' ');
  $('gate').hidden = may(needed);
  if (may(needed)) return;
  notice(`the token ${caller.name} is that of a ${caller.role}, who may not see this page`);
  throw new Error('another token is needed');
}

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
/**
 * Waits until somebody types a token. A refused token is not sent again, because each attempt would count as a guess,
 * even against other callers at this address.
 */
const untilTyped = () =>
  new Promise((resolve) => {
    onTyped = resolve;
  });
const POLL_MS = 2000;

/** Yields the names of changed lists. It reads events with fetch, because an EventSource cannot send the token. */
async function* events() {
  const reader = (await ask('/_mock/events')).body.pipeThrough(new TextDecoderStream()).getReader();
  yield [];
  for (let rest = ''; ; ) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split('\n');
    rest = lines.pop();
    yield lines.map((line) => line.slice(6));
  }
}

/** Yields the list of sales again and again. A till must not see which other lists change. */
async function* polls() {
  for (; ; await wait(POLL_MS)) {
    await ask('/admin/v1/caller');
    yield ['sales'];
  }
}

/**
 * Calls `opened` each time that the gateway becomes reachable, then `changed` with the names of lists that have
 * changed. Without the right `needed` the page shows nothing.
 */
export async function watch(opened, changed, needed = 'look') {
  for (;;) {
    const used = token;
    try {
      await enter(needed);
      let isOpen = false;
      for await (const topics of may('look') ? events() : polls()) {
        if (!isOpen) {
          $('live').textContent = 'connected';
          $('live').className = 'on';
          await opened();
        }
        isOpen = true;
        changed(topics);
      }
    } catch (error) {
      $('live').title = error.message;
    }
    $('live').textContent = 'not connected';
    $('live').className = '';
    if ($('gate').hidden) await wait(1000);
    else if (token === used) await untilTyped();
  }
}
