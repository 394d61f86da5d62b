import { z } from 'zod';
import type { WireEntryOf } from '../../protocol/wire.ts';
import type { Ledger, Payment } from './ledger.ts';
import { type Line, line, note, variable } from './line.ts';
import type { Recording } from './recording.ts';
import type { Stand } from './stand.ts';
import type { Heard } from './wire-at.ts';

type Attempt = Heard & WireEntryOf<'callback'>;

const SILENT = /^no answer within /;
const OTHER_SHAPE = /^the body is not the documented reply/;
/** Stands for an answer that never came, as when nobody listened. */
const NOT_THERE = 503;

const payload = z.looseObject({
  amount: z.int(),
  content: z.string(),
  orderId: z.string(),
  transType: z.string(),
  terminalCode: z.string(),
});

/** What partners were told, as expectations, and how their servers failed, as faults ahead of the payments. */
export function callbackLines({ heard }: Recording, stand: Stand, ledger: Ledger): Line[] {
  const byId = new Map<string, Attempt[]>();
  for (const it of heard) if (it.kind === 'callback') byId.set(it.id, [...(byId.get(it.id) ?? []), it]);
  return [...byId.values()].flatMap((attempts) => linesOf(attempts, stand, ledger));
}

function linesOf(attempts: readonly Attempt[], stand: Stand, ledger: Ledger): Line[] {
  const [first] = attempts;
  const last = attempts.findLast(({ byHand }) => !byHand) ?? attempts.at(-1);
  if (first === undefined || last === undefined) return [];
  const payment = ledger.payments.get(first.transactionId);
  if (payment === undefined) {
    return [note(first.atMs, 'a payment that no call of this recording made was told to its partner')];
  }
  const failures = failuresOf(attempts, payment);
  if (last.result === 'pending') {
    return [...failures, note(last.atMs, `its callback was still to be made after ${attempts.length} attempts`)];
  }
  const fields = payload.safeParse(last.body);
  const callback = {
    payment: variable(payment.name, 'transactionId'),
    ...(last.result === 'delivered' ? {} : { status: last.result }),
    attempts: attempts.filter(({ byHand }) => !byHand).length,
    ...(fields.success ? { fields: fieldsOf(fields.data, stand, ledger) } : {}),
  };
  return [...failures, line(last.atMs, { expect: { callback } })];
}

function fieldsOf(
  { amount, content, orderId, transType, terminalCode }: z.output<typeof payload>,
  stand: Stand,
  ledger: Ledger,
): object {
  const order = ledger.orders.findLast((it) => it.orderId === orderId);
  const box = stand.boxVariable(terminalCode);
  const isShown = [...ledger.shows.values()].some((it) => it.order === order && it.shownMs !== undefined);
  return {
    amount,
    content,
    // Of an order from before, its id says nothing here.
    ...(orderId !== '' && order === undefined ? {} : { orderId }),
    transType,
    // One that was generated for a terminal, but shown nowhere, is not so here.
    ...(isShown && box !== undefined ? { terminalCode: box } : {}),
  };
}

function failuresOf(attempts: readonly Attempt[], { atMs }: Payment): Line[] {
  const answers = attempts.map(answerOf);
  const lines: Line[] = [];
  for (const [index, answer] of answers.entries()) {
    if (answer === 'ok' || answer === answers[index - 1]) continue;
    const next = answers.findIndex((it, at) => at > index && it !== answer);
    const times = (next < 0 ? answers.length : next) - index;
    const step = { fault: { partner: { answer, ...(times === 1 ? {} : { times }) } } };
    const why = attempts[index]?.error;
    const isStandIn = answer === NOT_THERE && why !== null && why !== undefined;
    lines.push({ ...line(atMs, step, ...(isStandIn ? [`the partner was not reached: ${why}`] : [])), isAhead: true });
  }
  return lines;
}

function answerOf({ status, warning, error }: Attempt): number | 'ok' | 'never' | 'wrong-shape' {
  if (status === null) return SILENT.test(error ?? '') ? 'never' : NOT_THERE;
  if (status !== 200) return status;
  return OTHER_SHAPE.test(warning ?? '') ? 'wrong-shape' : 'ok';
}
