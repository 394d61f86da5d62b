import { $, el, notice } from './elements.js';

/** Shows the whole flow as commands to copy. */
export function curls({ baseUrl, partner, account, box }) {
  $('base').textContent = baseUrl;
  const user = partner?.username ?? 'PARTNER';
  const password = partner?.password ?? 'PASSWORD';
  const to = account ?? { bankAccount: 'ACCOUNT', bankCode: 'MB', userBankName: 'NAME' };
  const json = '-H \'content-type: application/json\' -H "authorization: Bearer $TOKEN"';
  const order = {
    amount: 50000,
    content: 'DH001',
    bankAccount: to.bankAccount,
    bankCode: to.bankCode,
    userBankName: to.userBankName,
    transType: 'C',
    orderId: 'DH001',
    qrType: 0,
  };
  const sum = `printf '%s' '${password}${to.bankAccount}50000${to.bankCode}' | md5sum | cut -c1-32`;
  const lines = [
    [
      'A token, good for 300 seconds',
      `TOKEN=$(curl -s -X POST -u '${user}:${password}' ${baseUrl}/api/token_generate | sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/')`,
    ],
    [
      'A QR for an order',
      `QR=$(curl -s ${baseUrl}/api/qr/generate-customer ${json} \\\n  -d '${JSON.stringify(order)}' | sed 's/.*"qrCode":"\\([^"]*\\)".*/\\1/'); echo "$QR"`,
    ],
    [
      `Onto the box ${box?.terminalCode ?? ''}`,
      `curl -s ${baseUrl}/api/tid/send-qr ${json} \\\n  -d "{\\"bankAccount\\":\\"${to.bankAccount}\\",\\"bankCode\\":\\"${to.bankCode}\\",\\"amount\\":\\"50000\\",\\"content\\":\\"DH001\\",\\"qrCode\\":\\"$QR\\",\\"terminalCode\\":\\"${box?.terminalCode ?? 'VVB…'}\\",\\"orderId\\":\\"DH001\\",\\"checkSum\\":\\"$(${sum})\\"}"`,
    ],
    [
      'The payer pays',
      `curl -s ${baseUrl}/bank/api/test/transaction-callback ${json} \\\n  -d '${JSON.stringify({ bankAccount: to.bankAccount, content: 'DH001', amount: 50000, transType: 'C' })}'`,
    ],
  ];
  $('curls').replaceChildren(
    ...lines.map(([title, line]) =>
      el(
        'div',
        { class: 'curl' },
        el('p', {}, title),
        el(
          'button',
          { type: 'button', onclick: () => navigator.clipboard.writeText(line).then(() => notice('copied')) },
          'Copy',
        ),
        el('pre', {}, line),
      ),
    ),
  );
}
