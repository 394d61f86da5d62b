import { Mismatch } from '../../check.ts';
import { codeOf, summaryOf } from '../client.ts';
import { recordOf } from '../json.ts';
import {
  type Body,
  expectCode,
  expectQr,
  expectStatus,
  forEachCase,
  generateBody,
  makeQr,
  pushBody,
} from '../requests.ts';
import { gap, type ServiceCheck, type ServiceRun } from '../subject.ts';
import { generate } from './generate.ts';
import { pushOrder, sendPush } from './push.ts';

const BODY_BYTES_MAX = 65_536;
const AMOUNT_MAX = 9_999_999_999_999;

/** A generate request of exactly this many bytes. */
function bodyOf(run: ServiceRun, bytes: number): Body {
  const body = JSON.stringify({ ...generateBody(run), ofALaterVersion: '' });
  return body.replace('"ofALaterVersion":""', `"ofALaterVersion":"${'x'.repeat(bytes - body.length)}"`);
}

export const limitChecks: readonly ServiceCheck[] = [
  gap('LIM-1', 'amounts of 1 and 9,999,999,999,999 are taken, one more is E02', async (run) => {
    await forEachCase([1, AMOUNT_MAX], async (amount) => {
      expectQr(await generate(run, { ...generateBody(run), amount }), `an amount of ${amount}`);
    });
    expectCode(await generate(run, { ...generateBody(run), amount: AMOUNT_MAX + 1 }), 'E02', 'one more');
  }),
  gap('LIM-2', 'an account of 1 to 19 letters or digits is taken, a longer one is E10', async (run) => {
    await forEachCase(['7', 'SHOP2ACC', 'aB3'.repeat(7).slice(0, 19)], async (bankAccount) => {
      expectQr(await generate(run, { ...generateBody(run), bankAccount }), `the account ${bankAccount}`);
    });
    await forEachCase(['1'.repeat(20), '0123-4567'], async (bankAccount) => {
      expectCode(await generate(run, { ...generateBody(run), bankAccount }), 'E10', `the account ${bankAccount}`);
    });
  }),
  gap('LIM-3', 'content of 25 goes into a QR and 26 is E26; an orderId of 64 is taken and 65 is E46', async (run) => {
    expectQr(await generate(run, { ...generateBody(run), content: 'X'.repeat(25) }), 'content of 25');
    expectCode(await generate(run, { ...generateBody(run), content: 'X'.repeat(26) }), 'E26', 'content of 26');
    expectQr(await generate(run, { ...generateBody(run), orderId: 'x'.repeat(64) }), 'an orderId of 64');
    expectCode(await generate(run, { ...generateBody(run), orderId: 'x'.repeat(65) }), 'E46', 'an orderId of 65');
  }),
  gap('LIM-3', 'content of 99 is taken in a push, 100 is E46', ['a box'], async (run) => {
    const order = run.subject.newOrder();
    const body = pushBody(run, order, makeQr(run.subject, order));
    const taken = await sendPush(run, { ...body, content: 'ế'.repeat(99) });
    if (codeOf(taken) === 'E46') throw new Mismatch(`content of 99: the answer is ${summaryOf(taken)}`);
    expectCode(await sendPush(run, { ...body, content: 'x'.repeat(100) }), 'E46', 'content of 100');
  }),
  gap('LIM-4', 'a body of 65,536 bytes is taken, one byte more is 413', async (run) => {
    expectQr(await generate(run, bodyOf(run, BODY_BYTES_MAX)), 'a body at the limit');
    expectStatus(await generate(run, bodyOf(run, BODY_BYTES_MAX + 1)), 413, 'a body of one byte more');
  }),
  gap('LIM-5', 'a box code is VVB and six digits: another one is E35', (run) =>
    forEachCase(['VVB1', 'vvb000001', 'VVB0000001', 'BOX000001'], async (terminalCode) => {
      const order = run.subject.newOrder();
      const change = { terminalCode, serialNumber: '' };
      const called = await pushOrder(run, order, change);
      expectCode(called, 'E35', `a push to ${terminalCode}`);
      const made = await generate(run, { ...generateBody(run), terminalCode });
      expectCode(made, 'E35', `a QR for ${terminalCode}`);
      if (recordOf(made.json).qrCode !== undefined) throw new Mismatch('the refusal has a QR');
    }),
  ),
];
