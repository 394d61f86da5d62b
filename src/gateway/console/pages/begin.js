import { $, el, notice } from './elements.js';
import { orderCommands } from './order-calls.js';

/** Shows the whole flow as commands to copy. */
export function curls({ baseUrl, partner, account, box }) {
  $('base').textContent = baseUrl;
  const terminalCode = box?.terminalCode ?? 'VVB…';
  const calls = orderCommands({
    baseUrl,
    username: partner?.username ?? 'PARTNER',
    password: partner?.password ?? undefined,
    account: account ?? { bankAccount: 'ACCOUNT', bankCode: 'MB', userBankName: 'NAME' },
    terminalCode,
    order: { amount: 50000, content: 'DH001', orderId: 'DH001' },
  });
  $('curls').replaceChildren(
    command('A token, good for 300 seconds', calls.token),
    command('A QR for an order', calls.generate),
    command(`Onto the box ${terminalCode}`, calls.sendQr),
    command('The payer pays', calls.pay),
  );
}

/** Makes a command with a button to copy it. */
export function command(title, text, { copy = 'Copy', copied = 'copied' } = {}) {
  const line = el('pre', {}, text);
  const onclick = async () => {
    // Over plain HTTP from another machine, a page has no clipboard. Then the text is selected instead.
    if (navigator.clipboard === undefined) getSelection().selectAllChildren(line);
    else await navigator.clipboard.writeText(text).then(() => notice(copied));
  };
  return el('div', { class: 'curl' }, el('p', {}, title), el('button', { type: 'button', onclick }, copy), line);
}
