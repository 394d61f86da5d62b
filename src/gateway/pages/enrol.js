import { $, el, notice, time } from './elements.js';

/** As the QR of a box says it; whatever else stands there is nobody's. */
const FRAGMENT = /^#enrol\/(VVB\d{6})\/([\dA-Za-z-]{12,14})$/;
const ADVICE = {
  WRONG_CODE: 'no box shows this code: read it on the screen again',
  CODE_SHARED:
    'somebody else may have read this code too: let nobody see the screen, and take the new one; see in the log who else asks',
  ENROLMENT_CLOSED: 'this box is not to be enrolled: see the configuration of the gateway',
  E35: 'no box has this code',
};

/** The boxes that ask, and the form that accepts one; `ask` is asked as the console asks everything. */
export function enrolments(ask, asking) {
  const form = $('enrol-form');
  $('enrol').hidden = asking.length === 0 && form.elements.code.value === '';
  const reject = (terminalCode) => async () => {
    try {
      await ask(`/_mock/enrolments/${terminalCode}/reject`, { method: 'POST' });
      notice(`${terminalCode} is turned down`);
    } catch (error) {
      notice(error.message);
    }
  };
  return asking.map((it) =>
    el(
      'div',
      { class: 'box' },
      el('div', { class: 'name' }, it.terminalCode),
      el('div', { class: 'sub' }, `serial ${it.serialNumber}`),
      el('div', { class: 'sub' }, `from ${it.from.join(', ')} since ${time(it.since)}`),
      it.requests > 1
        ? el('div', { class: 'sub' }, `${it.requests} requests: only the code tells which is the box`)
        : '',
      it.replaces ? el('div', { class: 'sub' }, 'has a secret already, which this replaces') : '',
      el('button', { type: 'button', onclick: reject(it.terminalCode) }, 'Reject'),
    ),
  );
}

/** Fills the form from the address, and nothing more: a person compares it with the box and accepts. */
export function startEnrolForm(ask) {
  const form = $('enrol-form');
  const fill = () => {
    const [, terminalCode, code] = FRAGMENT.exec(location.hash) ?? [];
    if (code === undefined) return;
    form.elements.box.value = terminalCode;
    form.elements.code.value = code.toUpperCase();
    $('enrol').hidden = false;
    $('enrol').scrollIntoView();
  };
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const { box, code } = Object.fromEntries(new FormData(form));
    try {
      const headers = { 'content-type': 'application/json' };
      const path = `/_mock/enrolments/${encodeURIComponent(box)}/accept`;
      await ask(path, { method: 'POST', headers, body: JSON.stringify({ code }) });
      notice(`${box} is accepted: it comes online`);
      form.reset();
      history.replaceState(null, '', location.pathname);
      $('enrol').hidden = $('enrolments').childElementCount === 0;
    } catch (error) {
      notice(ADVICE[error.message.replace('refused: ', '')] ?? error.message);
    }
  });
  addEventListener('hashchange', fill);
  fill();
}
