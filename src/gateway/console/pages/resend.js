import { $, el, notice, pill, time } from './elements.js';

const ALL = '';

/** Draws the backlog of callbacks. Keeps the selected partner. */
export function drawBacklog({ waiting, failed, oldestWaitingSeconds, partners }) {
  const select = $('resend-partner');
  const chosen = select.value;
  const failing = partners.filter((it) => it.failed > 0);
  const option = (value, text) => el('option', { value }, text);
  const options = failing.map((it) => option(it.partner, `${it.partner} (${it.failed})`));
  select.replaceChildren(option(ALL, `every partner (${failed})`), ...options);
  select.value = failing.some((it) => it.partner === chosen) ? chosen : ALL;
  $('resend-form').hidden = failed === 0;
  $('callbacks-count').textContent = [
    failed === 0 ? '' : `${failed} failed`,
    waiting === 0 ? '' : `${waiting} waiting, the oldest for ${ageOf(oldestWaitingSeconds)}`,
  ]
    .filter((it) => it !== '')
    .join(' · ');
}

/** Starts the form that resends failed callbacks of a partner or period. `ask` sends a request to the gateway. */
export function startResendForm(ask) {
  const form = $('resend-form');
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const fields = Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== ALL));
    for (const name of ['from', 'to']) if (fields[name]) fields[name] = new Date(fields[name]).toISOString();
    const headers = { 'content-type': 'application/json' };
    try {
      const answer = await ask('/_mock/callbacks/resend', { method: 'POST', headers, body: JSON.stringify(fields) });
      const { callbacks, more } = await answer.json();
      notice(`${callbacks} are sent again${more ? ', and there are more' : ''}`);
    } catch (error) {
      notice(error.message);
    }
  });
}

/** Draws one attempt of a callback. */
export function attempt(it, index) {
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

function ageOf(seconds) {
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}
