import { $, el, notice, time } from './elements.js';

/** The fragment in the QR of a box. Any other fragment is ignored. */
const FRAGMENT = /^#enrol\/(VVB\d{6})\/([\dA-Za-z-]{12,14})$/;
const ADVICE = {
  WRONG_CODE: 'no box shows this code: read it on the screen again',
  CODE_SHARED: 'somebody else may know this code: hide the screen and use the new code; the log shows who else asks',
  BOX_DISABLED: 'this box is disabled: enable it first, at /registry',
  ENROLMENT_CLOSED: 'enrolment of this box is closed: see the configuration of the gateway',
  E35: 'no box has this code',
};

/** Draws the boxes that ask to enrol. `ask` sends a request to the gateway. */
export function enrolments(ask, asking) {
  const form = $('enrol-form');
  $('enrol').hidden = asking.length === 0 && form.elements.code.value === '';
  const reject = (terminalCode) => async () => {
    try {
      await ask(`/_mock/enrolments/${terminalCode}/reject`, { method: 'POST' });
      notice(`${terminalCode} is rejected`);
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
        ? el('div', { class: 'sub' }, `${it.requests} requests: only the code shows which is the box`)
        : '',
      it.replaces ? el('div', { class: 'sub' }, 'has a secret already, which this replaces') : '',
      el('button', { type: 'button', 'data-may': 'administer', onclick: reject(it.terminalCode) }, 'Reject'),
    ),
  );
}

/** Fills the form from the URL, but does not send it. A person must compare the code with the box. */
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
