import { PATHS } from '../../../protocol/http-api.ts';
import { Mismatch } from '../../check.ts';
import { expectFields, expectOk, generateBody, post } from '../requests.ts';
import { gap, type ServiceCheck } from '../subject.ts';
import { callbackBody, payOrder } from './callbacks.ts';

/** The clock of a service may differ from ours; this is enough to tell milliseconds from seconds. */
const CLOCKS_APART_MS = 24 * 3_600_000;

/** Further fields of a callback (PROTOCOL.md, clause SYN-2). */
export const callbackFactChecks: readonly ServiceCheck[] = [
  gap(
    'SYN-2',
    'a callback says when it was paid, in milliseconds, and has a reference number of its own',
    ['callbacks'],
    async (run) => {
      const { clock } = run.subject.time;
      const numbers = new Set<unknown>();
      for (const order of [run.subject.newOrder(), run.subject.newOrder()]) {
        const { transactiontime, referencenumber } = await callbackBody(run, await payOrder(run, order));
        const isNow = Math.abs(Number(transactiontime) - clock.wallMs()) < CLOCKS_APART_MS;
        if (!isNow) throw new Mismatch(`transactiontime: expected the time in milliseconds, is ${transactiontime}`);
        numbers.add(referencenumber);
      }
      if (numbers.size < 2) throw new Mismatch(`referencenumber: two payments have ${[...numbers].join()}`);
    },
  ),
  gap('SYN-2', 'the callback of a debit says so', ['callbacks'], async (run) => {
    const said = await callbackBody(run, await payOrder(run, run.subject.newOrder(), { transType: 'D' }));
    if (said.transType !== 'D') throw new Mismatch(`transType: expected D, is ${String(said.transType)}`);
  }),
  gap(
    'SYN-2',
    'a callback names the box and the service that its order was made for',
    ['callbacks', 'a box'],
    async (run) => {
      const order = run.subject.newOrder();
      const terminalCode = run.subject.options.box?.terminalCode ?? '';
      const names = { terminalCode, subTerminalCode: 'SUB1', serviceCode: 'S1', urlLink: 'https://shop.example.com/1' };
      expectOk(await post(run, PATHS.generate, { ...generateBody(run, order), ...names }), 'the request');
      const said = await callbackBody(run, await payOrder(run, order));
      await expectFields(names, said);
    },
  ),
];
