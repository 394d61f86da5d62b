import { createHash, randomUUID } from 'node:crypto';
import { binOf, type QrFacts, type ReadQr, readQr, writeQr } from './qr.ts';
import { type Box, type Fields, findBox, type Order, type Partner, Refusal, type World } from './world.ts';

const AMOUNT_MAX = 9_999_999_999_999;
const INVISIBLE = /[\p{C}\p{Default_Ignorable_Code_Point}\u2028\u2029\u2800]/u;

export function isAmount(amount: unknown, { faults }: World): amount is number {
  const most = faults.has('an amount may have fourteen digits') ? AMOUNT_MAX * 10 : AMOUNT_MAX;
  const least = faults.has('an amount of 0 is taken') ? 0 : 1;
  return Number.isInteger(amount) && Number(amount) >= least && Number(amount) <= most;
}

export function isAccount(account: string, { faults }: World): boolean {
  return (faults.has('an account may have twenty letters') ? /^[A-Za-z0-9]{1,20}$/ : /^[A-Za-z0-9]{1,19}$/).test(
    account,
  );
}

export function isTransType(transType: unknown, { faults }: World): transType is string {
  if (faults.has('transType X is taken') && transType === 'X') return true;
  return transType === 'C' || transType === 'D';
}

/** The text in a field, '' for one that is left out; E46 for what is no text, or is not visible (ERR-3). */
function textOf(fields: Fields, name: string, { faults }: World, charsMax = Number.POSITIVE_INFINITY): string {
  const value = fields[name] ?? '';
  const isNull = fields[name] === null && !faults.has('null is taken for a field that is left out');
  if (typeof value !== 'string' || isNull) throw new Refusal('E46');
  const isHidden = !value.isWellFormed() || INVISIBLE.test(value);
  if (isHidden && !faults.has('invisible text is taken')) throw new Refusal('E46');
  if ([...value].length > charsMax) throw new Refusal('E46');
  return value;
}

/** Makes and keeps the QR of an order (GEN-1 to GEN-7). */
export function generate(world: World, partner: Partner, fields: Fields, origin: string): object {
  const { faults, accounts, orders, pictures } = world;
  const qrType = fields.qrType === undefined ? 0 : fields.qrType;
  const needed = ['bankCode', 'bankAccount', 'userBankName', 'content'];
  if (qrType === 0) needed.push('amount', 'transType', 'orderId');
  else if (qrType === 1) needed.push('terminalCode');
  else if (qrType === 3) needed.push('amount', 'terminalCode', 'serviceCode');
  else throw new Refusal('E46');
  if (qrType === 0 && fields.qrType === undefined && faults.has('qrType is needed')) throw new Refusal('E46');
  if (faults.has('an order may have no id')) needed.splice(needed.indexOf('orderId'), 1);
  if (faults.has('an amount that is left out is 1000')) fields.amount ??= 1_000;
  if (needed.some((name) => fields[name] === undefined)) throw new Refusal('E46');
  const { amount, transType = 'C' } = fields;
  if (amount !== undefined && typeof amount !== 'number') throw new Refusal('E46');
  if (typeof transType !== 'string') throw new Refusal('E46');
  const text = (name: string) => textOf(fields, name, world);
  const orderCharsMax = faults.has('an orderId may be long') ? 100 : 64;
  const [bankCode, bankAccount, userBankName, content] = ['bankCode', 'bankAccount', 'userBankName', 'content'].map(
    text,
  ) as [string, string, string, string];
  const [terminalCode, subTerminalCode] = [text('terminalCode'), text('subTerminalCode')];
  const [serviceCode, urlLink, sign] = [text('serviceCode'), text('urlLink'), text('sign')];
  const orderId = textOf(fields, 'orderId', world, orderCharsMax);
  if (/[^ -~]/.test(userBankName) && faults.has('a holder with accents is a fault of the service')) throw new Error();
  const bin = binOf(bankCode) ?? (faults.has('a bank of no table is taken') ? '970400' : undefined);
  const charsMax = faults.has('content of 26 is taken') ? 26 : 25;
  const isPlain = faults.has('content may have accents') ? true : /^[A-Za-z0-9 .,\-_/:#]*$/.test(content);
  const isStrange = faults.has('content with a # is refused') && content.includes('#');
  const isBox = terminalCode === '' || findBox(world, terminalCode) !== undefined;
  const rules: [isWrong: boolean, code: string][] = [
    [qrType !== 1 && !isAmount(amount, world), 'E02'],
    [!isTransType(transType, world), 'E03'],
    [!isAccount(bankAccount, world), 'E10'],
    [bin === undefined || (/^\d/.test(bankCode) && faults.has('a bank is not found by its BIN')), 'E24'],
    [content.length > charsMax, 'E26'],
    [!isPlain || isStrange, 'E34'],
    [!isBox && !faults.has('a QR is made for an unknown box'), 'E35'],
  ];
  if (faults.has('what is wrong is looked for in another order')) rules.reverse();
  const wrong = rules.find(([isWrong]) => isWrong);
  if (wrong !== undefined) throw new Refusal(wrong[1]);
  const asked = qrType === 1 ? undefined : Number(amount);
  const facts = { bin: bin ?? '', account: bankAccount, amount: asked, content: printable(content, world) };
  const qrCode = earlierQr(world, partner, fields) ?? writeQr(payedTo(facts, partner, bankCode, world), faults);
  if (asked !== undefined) {
    const paid = { partner, bankAccount, amount: asked, content, transType, isPaid: false, qrCode };
    if (faults.has('only the newest order is known')) orders.splice(0);
    if (!faults.has('a generated order is not kept')) {
      orders.push({ ...paid, orderId, sign, terminalCode, subTerminalCode, serviceCode, urlLink });
    }
  }
  const pictureId = faults.has('every qrLink is the first') ? ([...pictures.keys()][0] ?? randomUUID()) : randomUUID();
  if (!pictures.has(pictureId)) pictures.set(pictureId, qrCode);
  const isThere = accounts.some((it) => it.bankAccount === bankAccount) || faults.has('every account exists');
  const answer = {
    bankCode,
    bankName: bankCode,
    bankAccount,
    userBankName,
    content,
    qrCode,
    imgId: pictureId,
    orderId,
  };
  const links = {
    qrLink: `${origin}/qr/${pictureId}.png`,
    transactionRefId: Buffer.from(randomUUID()).toString('base64url'),
  };
  const codes = { terminalCode, subTerminalCode, ...(!faults.has('an answer has no serviceCode') && { serviceCode }) };
  const more = {
    amount: String(asked ?? ''),
    existing: isThere ? 1 : 0,
    transactionId: randomUUID(),
    additionalData: [],
  };
  return { ...answer, ...links, ...codes, ...more };
}

/** What a QR can say of a content. */
function printable(content: string, { faults }: World): string {
  const said = content
    .normalize('NFD')
    .replace(/[^ -~]/g, '')
    .slice(0, 25);
  if (faults.has('a QR has its content in capitals')) return said.toUpperCase();
  return faults.has('a QR has single spaces') ? said.trim().replace(/ +/g, ' ') : said;
}

/** The QR of an earlier order that a service takes for this one. */
function earlierQr({ orders, faults }: World, partner: Partner, { orderId, content }: Fields): string | undefined {
  const own = orders.filter((it) => it.partner === partner);
  const byId = faults.has('an orderId has its first QR') && own.find((it) => it.orderId === orderId);
  const byContent = faults.has('a content has its first amount') && own.find((it) => it.content === content);
  return (byId || byContent || undefined)?.qrCode;
}

/** Whom a QR pays, with the faults of this service. */
function payedTo(facts: QrFacts, partner: Partner, bankCode: string, { partners, accounts, faults }: World): QrFacts {
  const isFirsts = partner !== partners[0] && faults.has("a second partner's QR pays the first");
  const [first] = accounts;
  if (isFirsts && first !== undefined) return { ...facts, account: first.bankAccount };
  return bankCode === 'TPB' && faults.has('the BIN of one bank is wrong') ? { ...facts, bin: '970403' } : facts;
}

const PUSHED = ['bankAccount', 'bankCode', 'amount', 'qrCode', 'checkSum'];

/** Shows a QR on a box that is on (SUM-1, SND-1 to SND-9). */
export function sendQr(world: World, partner: Partner, fields: Fields): object {
  const { faults } = world;
  const needed = faults.has('a push needs no QR') ? PUSHED.filter((it) => it !== 'qrCode') : PUSHED;
  if (needed.some((name) => fields[name] === undefined)) throw new Refusal('E46');
  const isNull = fields.checkSum === null && faults.has('a push without a checkSum is taken where it is null');
  if (isNull) fields.checkSum = rightSum(fields, partner);
  const [bankAccount, bankCode, amount, qrCode, checkSum, terminalCode, serialNumber] = [
    ...PUSHED,
    'terminalCode',
    'serialNumber',
  ].map((name) => textOf(fields, name, world)) as [string, string, string, string, string, string, string];
  const content = textOf(fields, 'content', world, faults.has('content of a push may be long') ? 200 : 99);
  const orderId = textOf(fields, 'orderId', world, 64);
  if (terminalCode === '' && serialNumber === '') throw new Refusal('E46');
  if (serialNumber !== '' && terminalCode === '' && faults.has('a push needs a terminalCode')) throw new Refusal('E46');
  const box = findBox(world, terminalCode, serialNumber);
  const qr = readQr(qrCode, faults);
  const rules: [isWrong: boolean, code: string][] = [
    [!isPushedAmount(amount, world), 'E02'],
    [!isCheckSum({ bankAccount, bankCode, amount, checkSum }, partner, world), 'E39'],
    ...accountRules(world, partner, bankAccount, bankCode),
    [box === undefined, 'E35'],
    [box !== undefined && box.account === undefined && !faults.has('a box without an account shows'), 'E36'],
    [qr === undefined && fields.qrCode !== undefined && !faults.has('an invalid QR is shown'), 'QR_INVALID'],
    [qr !== undefined && isOpen(qr, { bankAccount, bankCode, amount }, box, world), 'QR_STATIC'],
    [qr !== undefined && !fits(qr, { bankAccount, bankCode, amount }, box, world), 'QR_MISMATCH'],
    [box?.isOn === false, 'BOX_OFFLINE'],
  ];
  if (faults.has('the box of a push is looked for first')) rules.unshift([box === undefined, 'E35']);
  const wrong = rules.find(([isWrong]) => isWrong);
  if (wrong?.[1] === 'E35' && faults.has('SUCCESS for an unknown box')) return { status: 'SUCCESS', message: '' };
  if (wrong !== undefined) {
    const isShown =
      (wrong[1] === 'E39' && faults.has('a push with a wrong checkSum is refused and shown')) ||
      (wrong[1] === 'QR_MISMATCH' && faults.has('a QR that does not fit is refused and shown'));
    if (box !== undefined && isShown) box.shownQr = qrCode;
    const isTold = wrong[1] === 'E39' && faults.has('a refusal tells the right checkSum');
    throw new Refusal(wrong[1], 400, isTold ? { 'x-paybox-reason': rightSum(fields, partner) } : {});
  }
  const isKnown = (it: Order) =>
    it.orderId === orderId &&
    (faults.has('a known orderId is SUCCESS and keeps its first QR') ||
      (it.qrCode === qrCode && faults.has('a known push is SUCCESS for ever')));
  if (world.pushed.some(isKnown)) return { status: 'SUCCESS', message: '' };
  const order = world.orders.findLast((it) => it.partner === partner && it.orderId === orderId && it.qrCode === qrCode);
  const own = { partner, bankAccount, amount: Number(amount), content, transType: 'C', orderId, qrCode, isPaid: false };
  const codes = { sign: '', terminalCode: box?.terminalCode ?? '', subTerminalCode: '', serviceCode: '', urlLink: '' };
  const pushed: Order = order ?? { ...own, ...codes };
  if (order === undefined) world.orders.push(pushed);
  world.pushed.push(pushed);
  if (box !== undefined) box.shownQr = undefined;
  const isDrawn = !faults.has('SUCCESS is answered and nothing is on the screen');
  if (box !== undefined && isDrawn) {
    const isOther = faults.has('the box shows ten times the amount');
    box.shown = isOther
      ? { ...pushed, qrCode: qrCode.replace(/(?=5802VN)/, '').replace(/54(\d\d)(\d+)(?=5802VN)/, longer) }
      : pushed;
  }
  return { status: 'SUCCESS', message: faults.has('SUCCESS has a message') ? 'OK' : '' };
}

const longer = (_: string, length: string, amount: string) =>
  `54${String(Number(length) + 1).padStart(2, '0')}${amount}0`;

function isPushedAmount(amount: string, { faults }: World): boolean {
  if (faults.has('an amount may have a zero before it')) return /^0*[1-9]\d{0,12}$/.test(amount);
  return /^[1-9]\d{0,12}$/.test(amount);
}

/** Whose account it may be (SND-2). */
function accountRules(
  { accounts, faults }: World,
  partner: Partner,
  bankAccount: string,
  bankCode: string,
): [isWrong: boolean, code: string][] {
  const account = accounts.find((it) => it.bankAccount === bankAccount);
  const isOwn = partner.accounts.includes(bankAccount);
  return [
    [account === undefined, faults.has('an unknown account has a code of no table') ? 'X99' : 'E36'],
    [!isOwn && !faults.has("another partner's account is pushed to"), 'E77'],
    [binOf(bankCode) === undefined, 'E24'],
    [binOf(bankCode) !== binOf(account?.bankCode ?? ''), 'E51'],
  ];
}

interface PushedMoney {
  bankAccount: string;
  bankCode: string;
  amount: string;
}

function isCheckSum(
  { bankAccount, bankCode, amount, checkSum }: PushedMoney & { checkSum: string },
  { password }: Partner,
  { faults }: World,
): boolean {
  if (faults.has('any checkSum is taken')) return true;
  if (faults.has('a checkSum without the amount is taken') && checkSum === md5(password, bankAccount, bankCode))
    return true;
  const given = faults.has('a checkSum in capitals is taken') ? checkSum.toLowerCase() : checkSum;
  const right = md5(password, bankAccount, amount, bankCode);
  return given === right || (faults.has('eight characters of a checkSum count') && isNear(given, right));
}

const isNear = (given: string, right: string) =>
  given.length === right.length && given.slice(0, 8) === right.slice(0, 8);

const md5 = (...parts: string[]) => createHash('md5').update(parts.join(''), 'utf8').digest('hex');

function rightSum({ bankAccount, amount, bankCode }: Fields, { password }: Partner): string {
  return md5(password, String(bankAccount), String(amount), String(bankCode));
}

/** Whether a QR has no amount, and nothing else is wrong in it. */
function isOpen(qr: ReadQr, money: PushedMoney, box: Box | undefined, world: World): boolean {
  return qr.amount === undefined && fits({ ...qr, amount: Number(money.amount) }, money, box, world);
}

/** Whether a QR has the account, bank and amount of the fields and of the box (SND-2). */
function fits(qr: ReadQr, { bankAccount, bankCode, amount }: PushedMoney, box: Box | undefined, world: World): boolean {
  const { faults } = world;
  const isAmount = qr.amount === Number(amount) || faults.has('a QR of another amount is shown');
  const isUnlinked = box?.account === undefined && faults.has('a box without an account shows');
  const isBox =
    isUnlinked || box?.account === qr.account || faults.has('a QR of another account than the box has is shown');
  const isAccount = qr.account === bankAccount && isBox;
  if (qr.isCard && !faults.has('a QR that pays to a card is shown')) return false;
  return isAmount && (isAccount || faults.has('a QR of another account is shown')) && qr.bin === binOf(bankCode);
}
