import { amountText, boxIdTopic } from '../../../../protocol/dialect.ts';
import { ifKnown, precondition } from '../../check.ts';
import { type DialectCheck, gap, spec } from '../dialect-check.ts';

const OTHER_ACCOUNT = '8888888888';
/** No order is worth showing longer. */
const LIFETIME_MAX_MS = 30 * 60_000;
const REPEATED_AFTER_MS = 1_000;
/** Sizes of messages that are longer than the service's own, in characters. */
const LENGTHS = [1_100, 5_000, 60_000];
const DEEP = 400;
/** Amounts that do not fit into 32 bits, and how they are said. */
const LARGE_AMOUNTS: readonly [amount: number, words: string][] = [
  [3_000_000_000, 'ba tỷ'],
  [9_000_000_000_000, 'chín nghìn tỷ'],
];

/** Nothing of this means anything in the dialect. */
const GARBAGE: readonly (string | Uint8Array)[] = [
  ...['', ' ', 'null', '[]', '{', '{}', '"N17"', 'hello', '['.repeat(DEEP)],
  ...['{"notificationType":null}', '{"notificationType":17}', '{"notificationType":"N17"}'],
  '{"notificationType":"N17","amount":{},"qrCode":[]}',
  '{"notificationType":"N16","bankAccount":null,"qrCode":null}',
  '{"notificationType":"N05","amount":"","message":null}',
  new Uint8Array([0, 255, 254, 10, 0]),
];
/** Types that the service sends to apps. */
const OTHER_TYPES = ['N00', 'N01', 'N04', 'N13', 'N22'];

/** Messages of the service to a box (PROTOCOL.md, clauses VQD-4 and DIA-5 to DIA-8). */
export const NOTICE_CHECKS: readonly DialectCheck[] = [
  spec('DIA-5', 'shows the QR of an order (N17)', ['screen'], async (t) => {
    const order = t.order();
    await t.push(order);
    await t.expectShown(order);
  }),
  spec('DIA-5', 'names the amount beside the QR', ['words'], async (t) => {
    const order = t.order();
    await t.push(order);
    await t.expectNamed(order);
  }),
  spec('DIA-5', 'shows and names amounts of 10 to 13 digits', ['screen', 'words'], async (t) => {
    for (const [amount] of LARGE_AMOUNTS) {
      const order = t.order({ amount });
      await t.push(order);
      await t.expectShown(order);
      await t.expectNamed(order);
    }
  }),
  spec('DIA-5', 'a newer N17 replaces the QR', ['screen'], async (t) => {
    const older = await t.pushShown();
    const newer = t.order();
    await t.push(newer);
    await t.expectShown(newer);
    await t.expectTakenAway(older);
  }),
  spec('DIA-5', 'N12 takes the QR away', ['screen'], async (t) => {
    const order = await t.pushShown();
    await t.say({ notificationType: 'N12', transactionReceiveId: t.service.random.uuid() });
    await t.expectTakenAway(order);
  }),
  gap('DIA-5', 'shows no QR to another account than its own', ['screen'], async (t) => {
    const order = t.order({ account: OTHER_ACCOUNT });
    await t.push(order);
    await t.expectNotShown(order);
  }),
  gap('DIA-5', 'shows no QR of another amount than the one named', ['screen'], async (t) => {
    const order = t.order();
    await t.push(order, String(order.amount + 1_000));
    await t.expectNotShown(order);
  }),
  gap('DIA-5', 'an order that nobody ends leaves the screen within half an hour', ['screen', 'slow'], async (t) => {
    const order = await t.pushShown();
    await t.expectTakenAway(order, LIFETIME_MAX_MS);
  }),
  spec('VQD-4', 'N00 and types that are for apps change nothing', ['screen'], async (t) => {
    const order = await t.pushShown();
    const other = { ...t.order(), name: 'another order' };
    const { notificationType: _, ...fields } = t.linked({ qrCode: other.qrCode });
    const amount = amountText(other.amount);
    for (const notificationType of OTHER_TYPES) await t.service.say({ ...fields, notificationType, amount });
    await t.expectNotShown(other);
    await t.expectShown(order);
  }),
  gap('VQD-4', 'reads an amount without groups, with points, and as a number', ['screen'], async (t) => {
    await t.pushShown();
    await t.end();
    for (const text of [(it: number) => String(it), (it: number) => `${it}.0`, (it: number) => it]) {
      const order = t.order();
      await t.push(order, text(order.amount));
      await t.expectShown(order);
    }
  }),
  gap('VQD-4', 'takes an N16 whose unneeded fields are null or missing', ['screen'], async (t) => {
    await precondition('its static QR', () => t.expectShown(t.staticQr()));
    const linkedTo = { bankAccount: OTHER_ACCOUNT, qrCode: t.staticQr(OTHER_ACCOUNT).qrCode };
    const { imgBank: _, homePage: __, ...linked } = t.linked(linkedTo);
    await t.service.say({ ...linked, terminalName: null, terminalCode: null, boxCode: null });
    await t.expectShown(t.staticQr(OTHER_ACCOUNT));
  }),
  spec('DIA-6', 'the screen names the amount of a payment (N05)', ['words'], async (t) => {
    const payment = t.order();
    await t.pay(payment);
    await t.expectNamed(payment);
  }),
  spec('DIA-6', 'names payments of 10 to 13 digits, on the screen and aloud', ['words'], async (t) => {
    for (const [amount, words] of LARGE_AMOUNTS) {
      const said = await ifKnown(() => t.box.saidSoFar());
      await t.pay({ amount });
      await t.expectNamed({ amount });
      if (said !== undefined) await t.box.expectWords(words, said);
    }
  }),
  spec('DIA-6', 'says a payment aloud once, and another one too', ['sound'], async (t) => {
    await t.expectSaid(1, () => t.pay(t.order()));
    await t.expectSaid(2, async () => {
      for (const payment of [t.order(), t.order()]) await t.pay(payment);
    });
  }),
  spec('DIA-6', 'says two payments of one amount that have other texts', ['sound'], async (t) => {
    const payment = t.order();
    await t.expectSaid(2, async () => {
      for (const _ of [1, 2]) await t.pay(payment);
    });
  }),
  spec(
    'DIA-6',
    'says a payment of another amount than the QR on the screen asks for',
    ['screen', 'sound'],
    async (t) => {
      const { amount } = await t.pushShown();
      await t.expectSaid(1, () => t.pay({ amount: amount + 1_000 }));
    },
  ),
  gap('DIA-6', 'says a payment once that it is told twice', ['sound'], async (t) => {
    await t.expectSaid(1, async () => {
      const [payment, message] = [t.order(), `Da nhan tien ${t.service.random.uuid()}`];
      await t.pay(payment, message);
      await t.time.wait(REPEATED_AFTER_MS);
      await t.pay(payment, message);
    });
  }),
  spec('DIA-6', 'the payment of an order takes its QR away', ['screen'], async (t) => {
    const order = await t.pushShown();
    await t.pay(order);
    await t.expectTakenAway(order);
  }),
  gap('DIA-6', 'after a payment of another amount the QR comes back', ['screen'], async (t) => {
    const order = await t.pushShown();
    await t.pay({ amount: order.amount + 1_000 });
    await precondition('a payment that covers it', () => t.expectTakenAway(order));
    await t.expectShown(order);
  }),
  spec('DIA-8', 'survives messages that mean nothing', [], async (t) => {
    const { service } = t;
    await t.expectSurvives(async () => {
      for (const topic of [service.boxTopic, ...service.answerTopics]) {
        for (const message of GARBAGE) await service.say(message, { topic });
      }
    }, 'order');
  }),
  spec('DIA-8', 'survives messages that are longer than the service sends', [], async (t) => {
    await t.expectSurvives(async () => {
      for (const length of LENGTHS) {
        const order = t.order();
        await t.pay(order, 'x'.repeat(length));
        await t.push({ ...order, qrCode: 'x'.repeat(length) });
      }
    });
  }),
  spec('DIA-8', 'believes nothing that is said to another box', ['screen'], async (t) => {
    const { identity, random } = t.service;
    const order = t.order();
    const topic = boxIdTopic(Buffer.from(`${identity.terminalCode}${random.uuid()}`).toString('base64url'));
    await t.service.say({ notificationType: 'N17', amount: String(order.amount), qrCode: order.qrCode }, { topic });
    await t.expectNotShown(order);
  }),
];
