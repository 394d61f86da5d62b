import { $ } from './elements.js';

let token = sessionStorage.getItem('token') ?? '';

/** Sends a request to the gateway; shows the form for the admin token where one is needed. Throws with the reason. */
export async function ask(path, options = {}) {
  const headers = { ...options.headers, ...(token === '' ? {} : { authorization: `Bearer ${token}` }) };
  const answer = await fetch(path, { ...options, headers });
  $('gate').hidden = answer.status !== 401;
  if (answer.status === 401) throw new Error('an admin token is needed');
  if (answer.ok) return answer;
  const { message, reason } = await answer.json().catch(() => ({ message: `HTTP ${answer.status}` }));
  throw new Error(`refused: ${reason ?? message}`);
}

/** Whether calls of an admin carry the token. */
export const hasToken = () => token !== '';

export function startLogin() {
  $('login').addEventListener('submit', (event) => {
    event.preventDefault();
    token = new FormData($('login')).get('token');
    sessionStorage.setItem('token', token);
  });
}

/** Whether the gateway has real money; only once `showMode` is done. */
export const isLive = () => $('mode').className === 'live';

/** Says of itself whether the gateway is a sandbox. */
export async function showMode() {
  const about = await (await ask('/_mock/about')).json();
  $('mode').textContent = about.mode === 'live' ? 'LIVE' : about.sandbox ? 'SANDBOX' : '';
  $('mode').className = about.mode;
  return about;
}

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Calls `opened` each time that the gateway can be reached, then `changed` with the names of lists that have changed. It
 * reads the events with fetch: an EventSource cannot send the admin token.
 */
export async function watch(opened, changed) {
  for (;;) {
    try {
      const reader = (await ask('/_mock/events')).body.pipeThrough(new TextDecoderStream()).getReader();
      $('live').textContent = 'connected';
      $('live').className = 'on';
      await opened();
      for (let rest = ''; ; ) {
        const { value, done } = await reader.read();
        if (done) break;
        const lines = (rest + value).split('\n');
        rest = lines.pop();
        changed(lines.map((line) => line.slice(6)));
      }
    } catch (error) {
      $('live').title = error.message;
    }
    $('live').textContent = 'not connected';
    $('live').className = '';
    await wait(1000);
  }
}
