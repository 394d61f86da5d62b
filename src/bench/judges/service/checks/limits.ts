import { Mismatch } from '../../check.ts';
import { type Body, type CheckContext, gap, type ServiceCheck } from '../check-context.ts';
import { codeOf, summaryOf } from '../client.ts';
import { expectCode, expectQr, expectStatus, forEachCase, mayBeTaken, unlessTaken } from '../expectations.ts';
import { recordOf } from '../json.ts';
import { AMOUNT_MAX, AMOUNTS } from './sizes.ts';

const BODY_BYTES_MAX = 65_536;
/** It may name a store in generate (PROTOCOL.md, clause LEN-5). */
const STORE_CODE = /^(?!VVB)/i;

/** Returns a generate request of exactly this many bytes. */
function bodyOf(t: CheckContext, bytes: number): Body {
  const body = JSON.stringify({ ...t.generateBody(), ofALaterVersion: '' });
  return body.replace('"ofALaterVersion":""', `"ofALaterVersion":"${'x'.repeat(bytes - body.length)}"`);
}

export const limitChecks: readonly ServiceCheck[] = [
  gap('LIM-1', 'amounts of 1 and 9,999,999,999,999 are taken, one more is E02', [], async (t) => {
    await forEachCase(AMOUNTS, async (amount) => {
      expectQr(await t.generateWith({ amount }), `an amount of ${amount}`);
    });
    expectCode(await t.generateWith({ amount: AMOUNT_MAX + 1 }), 'E02', 'one more');
  }),
  gap('LIM-2', 'an account of 1 to 19 letters or digits is taken, a longer one is E10', [], async (t) => {
    await forEachCase(['7', 'SHOP2ACC', 'aB3'.repeat(7).slice(0, 19)], async (bankAccount) => {
      expectQr(await t.generateWith({ bankAccount }), `the account ${bankAccount}`);
    });
    await forEachCase(['1'.repeat(20), '0123-4567'], async (bankAccount) => {
      expectCode(await t.generateWith({ bankAccount }), 'E10', `the account ${bankAccount}`);
    });
  }),
  gap('LIM-3', 'content of 25 goes into a QR and 26 is E26; an orderId of 64 is taken and 65 is E46', [], async (t) => {
    expectQr(await t.generateWith({ content: 'X'.repeat(25) }), 'content of 25');
    expectCode(await t.generateWith({ content: 'X'.repeat(26) }), 'E26', 'content of 26');
    expectQr(await t.generateWith({ orderId: 'x'.repeat(64) }), 'an orderId of 64');
    const longer = await t.generateWith({ orderId: 'x'.repeat(65) });
    mayBeTaken(() => expectCode(longer, 'E46', 'an orderId of 65'));
  }),
  gap('LIM-3', 'content of 99 is taken in a push, 100 is E46', ['a box'], async (t) => {
    const body = t.orderPush();
    const taken = await t.sendPush({ ...body, content: 'ế'.repeat(99) });
    if (codeOf(taken) === 'E46') throw new Mismatch(`content of 99: the answer is ${summaryOf(taken)}`);
    const longer = await t.sendPush({ ...body, content: 'x'.repeat(100) });
    mayBeTaken(() => expectCode(longer, 'E46', 'content of 100'));
  }),
  gap('LIM-4', 'a body of 65,536 bytes is taken, one byte more is 413', [], async (t) => {
    expectQr(await t.generate(bodyOf(t, BODY_BYTES_MAX)), 'a body at the limit');
    const longer = await t.generate(bodyOf(t, BODY_BYTES_MAX + 1));
    mayBeTaken(() => expectStatus(longer, 413, 'a body of one byte more'));
  }),
  gap('LIM-5', 'a box code is VVB and six digits: another one is E35', [], (t) =>
    forEachCase(['VVB1', 'vvb000001', 'VVB0000001', 'BOX000001'], async (terminalCode) => {
      const called = await t.pushOrder(t.newOrder(), { terminalCode, serialNumber: '' });
      expectCode(called, 'E35', `a push to ${terminalCode}`);
      const made = await t.generateWith({ terminalCode });
      const judge = () => expectCode(made, 'E35', `a QR for ${terminalCode}`);
      if (STORE_CODE.test(terminalCode)) return unlessTaken(made, judge);
      // The specification has no terminalCode in generate, so a service may ignore it.
      mayBeTaken(judge);
      if (recordOf(made.json).qrCode !== undefined) throw new Mismatch('the refusal has a QR');
    }),
  ),
];
