import { md5 } from './md5.js';

const HEADERS = '\\\n  -H "authorization: Bearer $TOKEN" -H \'content-type: application/json\'';
/** These stand in a body for variables of the shell. */
const [QR, SUM] = ['\uE000', '\uE001'];
const PASSWORD = 'PASSWORD';

/** Returns the fields of generate for an order. */
export const generateFields = ({ amount, content, orderId }, { bankAccount, bankCode, userBankName }) => ({
  amount,
  content,
  bankAccount,
  bankCode,
  userBankName,
  transType: 'C',
  orderId,
  qrType: 0,
});

/** Returns the fields of send-qr without its checkSum. */
export const pushFields = ({ amount, content, orderId }, { bankAccount, bankCode }, terminalCode, qrCode) => ({
  bankAccount,
  bankCode,
  amount: String(amount),
  content,
  qrCode,
  terminalCode,
  orderId,
});

/** Returns the fields of a test callback. */
export const payFields = ({ amount, content }, { bankAccount }) => ({ bankAccount, content, amount, transType: 'C' });

/** Returns the checkSum of a push (PROTOCOL.md, clause SUM-1). */
export const checkSumOf = (password, { bankAccount, amount, bankCode }) =>
  md5(`${password}${bankAccount}${amount}${bankCode}`);

/**
 * Returns the calls of an order as commands for a shell: token, generate, sendQr, pay. The first sets TOKEN, the second
 * QR. If the password is unknown, the commands contain PASSWORD, and the shell calculates the checkSum.
 */
export function orderCommands({ baseUrl, username, password, account, terminalCode, order }) {
  const push = pushFields(order, account, terminalCode, QR);
  const { bankAccount, amount, bankCode } = push;
  const sum = `$(printf %s ${quoted(`${password ?? PASSWORD}${bankAccount}${amount}${bankCode}`)} | md5sum | cut -c1-32)`;
  const body = (fields) => quoted(JSON.stringify(fields)).replaceAll(QR, `'"$QR"'`).replaceAll(SUM, `'"${sum}"'`);
  const post = (path, fields) => `curl -s ${quoted(baseUrl + path)} ${HEADERS} \\\n  -d ${body(fields)}`;
  const checkSum = password === undefined ? SUM : checkSumOf(password, push);
  const login = `curl -s -X POST -u ${quoted(`${username}:${password ?? PASSWORD}`)} ${quoted(`${baseUrl}/api/token_generate`)}`;
  return {
    token: `TOKEN=$(${login} \\\n  | sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/')`,
    generate: `QR=$(${post('/api/qr/generate-customer', generateFields(order, account))} \\\n  | sed 's/.*"qrCode":"\\([^"]*\\)".*/\\1/'); echo "$QR"`,
    sendQr: post('/api/tid/send-qr', { ...push, checkSum }),
    pay: post('/bank/api/test/transaction-callback', payFields(order, account)),
  };
}

/** Returns a text as one word for a shell, whatever characters it has. */
export const quoted = (text) => (/^[\w:/.-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);
