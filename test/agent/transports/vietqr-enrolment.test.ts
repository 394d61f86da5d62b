import { describe, expect, it } from 'vitest';
import { VietqrEnrolment } from '../../../src/device/agent/transports/vietqr-enrolment.ts';
import { VirtualClock } from '../../../src/lib/virtual-clock.ts';
import type { EnrolAnswer } from '../../../src/protocol/dialect.ts';
import { quietLog } from '../../support/kept-log.ts';

const answer = (boxId: string, qrCertificate = 'sample'): EnrolAnswer => ({ boxId, qrCertificate });

/** A box that asks; `heard` are the answers to each of its questions. */
function asking(known: EnrolAnswer | undefined, heard: EnrolAnswer[] = []) {
  const clock = new VirtualClock();
  const log = quietLog(clock);
  const taken: EnrolAnswer[] = [];
  const box = { taken, clock, asked: 0, isShowing: false, hear };
  const enrolment = new VietqrEnrolment({
    clock,
    log,
    identity: { terminalCode: 'VVB000001', serialNumber: 'VVB900001' },
    publish: () => {
      box.asked += 1;
      for (const it of heard) void hear(it);
    },
    enrolled: () => taken.at(-1) ?? known,
    isShowing: () => box.isShowing,
    take: async (it) => void taken.push(it),
  });
  function hear(it: EnrolAnswer, retain = false) {
    return enrolment.hear({ payload: JSON.stringify(it), retain });
  }
  const stop = new AbortController();
  return { ...box, box, stop, asking: enrolment.ask(stop.signal) };
}

describe('the enrolment of a box in the public dialect', () => {
  it('DIA-1 asks again with backoff, at most once a minute in the end', async () => {
    const { box, clock, stop, asking: over } = asking(answer('own'));
    await clock.advance(500 + 1_000 + 2_000);
    expect(box.asked).toBe(4);
    await clock.advance(600_000);
    expect(box.asked).toBeLessThanOrEqual(4 + 4 + 10);
    stop.abort();
    await over;
  });

  it('DIA-1 takes the first answer to a question, and no other after it', async () => {
    const { box, taken, hear, clock } = asking(undefined);
    await hear(answer('own', 'one'));
    await hear(answer('own', 'two'));
    await hear(answer('other'));
    await clock.advance(600_000);
    expect([taken, box.asked]).toEqual([[answer('own', 'one')], 1]);
  });

  it('DIA-3 takes another boxId after three questions that were answered with it alone', async () => {
    const { taken, clock } = asking(answer('own'), [answer('other')]);
    await clock.advance(3_499);
    expect(taken).toEqual([]);
    await clock.advance(1);
    expect(taken).toEqual([answer('other')]);
  });

  it('DIA-3 takes another boxId only once no order is on the screen', async () => {
    const { box, taken, clock } = asking(answer('own'), [answer('other')]);
    box.isShowing = true;
    await clock.advance(600_000);
    expect(taken).toEqual([]);
    box.isShowing = false;
    await clock.advance(60_000);
    expect(taken).toEqual([answer('other')]);
  });

  it.each([
    ['two others', [answer('other'), answer('third')]],
    ['its own after another', [answer('other'), answer('own')]],
    ['another with a payment QR', [answer('other', '000201')]],
  ])('DIA-3 DIA-2 keeps its boxId where it hears %s', async (_what, heard) => {
    const { taken, clock, stop } = asking(answer('own'), heard);
    await clock.advance(600_000);
    expect(taken).toEqual([]);
    stop.abort();
  });

  it('DIA-8 takes no answer that the broker has kept', async () => {
    const { taken, hear, stop } = asking(undefined);
    await hear(answer('own'), true);
    expect(taken).toEqual([]);
    stop.abort();
  });
});
