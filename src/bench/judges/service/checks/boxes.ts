import { systemClock } from '../../../../lib/clock.ts';
import { BOX_REFUSALS } from '../../../../protocol/codes.ts';
import { PATHS } from '../../../../protocol/http-api.ts';
import { Breach, Mismatch, PreconditionFailed } from '../../check.ts';
import { type CheckContext, gap, type ServiceCheck, spec } from '../check-context.ts';
import { type Answer, codeOf, isRefusal, summaryOf } from '../client.ts';
import { expectCode, expectFields, expectRefused, expectSuccess, forEachCase } from '../expectations.ts';
import { type OnShow, type SimulatedBox, withSimulatedBox } from '../simulated-box.ts';
import {
  expectNoMessage,
  expectUnanswered,
  pending,
  pushToRunningBox,
  QUIET_MS,
  showNothing,
  specWithBox,
  startPush,
  withBox,
} from './pushing.ts';
import { forEachAmount } from './sizes.ts';

/** Longest deadline of a push, and the interval of looking for its answer. */
const DEADLINE_MAX_MS = 65_000;
const DEADLINE_STEP_MS = 500;
const MANY_PUSHES = 30;
/** Shorter than any deadline of a push. */
const AT_ONCE_MS = 4_000;

export const boxChecks: readonly ServiceCheck[] = [
  spec('SND-3', 'a push to a box that is on is SUCCESS with an empty message', ['a box that is on'], async (t) => {
    const { called } = await pushToRunningBox(t);
    expectSuccess(called, 'the push');
    expectNoMessage(called);
  }),
  spec('SND-3', 'when it is SUCCESS, the QR is on the screen', ['a box that is on', 'a screen'], (t) =>
    forEachAmount(t, async (order) => {
      const { called, qrCode } = await pushToRunningBox(t, order);
      if (codeOf(called) !== undefined)
        throw new PreconditionFailed(`needs a push that is shown, this one is answered ${summaryOf(called)}`);
      const seen = await t.time.inRealTime(async () => t.options.seeQr?.());
      if (seen !== qrCode) throw new Mismatch(`the screen has ${seen ?? 'no QR'} after SUCCESS`);
    }),
  ),
  spec(
    'SND-3',
    'so it is for a known orderId with another amount, and for a push that another had replaced',
    ['a box that is on', 'a screen'],
    async (t) => {
      const { content, amount } = t.newOrder();
      for (const its of [amount, amount + 20_000, amount]) {
        const { called, qrCode } = await pushToRunningBox(t, { content, amount: its });
        const seen = await t.time.inRealTime(async () => t.options.seeQr?.());
        // A service may refuse an orderId that it knows.
        if (codeOf(called) === undefined && seen !== qrCode) {
          throw new Breach(`the screen has ${seen ?? 'no QR'} after SUCCESS for ${its} đồng`);
        }
      }
    },
  ),
  specWithBox('SND-3', 'the box gets the pushed QR, and nothing else', [], (t, box) =>
    forEachAmount(t, async (order) => {
      const { qrCode, answer, show } = await startPush(t, box, order);
      expectSuccess(await answer.called, 'a push that the box shows');
      const { bankAccount, userBankName } = t.options.account;
      const { amount, content } = order;
      await expectFields({ qrCode, bankAccount, userBankName, amount, content, orderId: content }, show);
    }),
  ),
  specWithBox(
    'SND-3',
    'the box gets the QR of each push: without a content, or of a known orderId',
    [],
    async (t, box) => {
      const { content, amount } = t.newOrder();
      const again = { content, amount: amount + 20_000 };
      const pushes = [
        { order: { content, amount } },
        { order: again },
        { order: t.newOrder(), change: { content: '' } },
      ];
      await forEachCase(pushes, async ({ order, change = {} }) => {
        const qrCode = t.makeQr(order);
        const called = await t.sendPush(t.pushBody(order, qrCode, { orderId: content, ...change }));
        // A service may refuse an orderId that it knows, or an empty content.
        if (isRefusal(called)) return;
        const got = box.of('show').at(-1)?.qrCode;
        if (got !== qrCode) throw new Breach(`SUCCESS for the QR ${qrCode}, and the box has ${got ?? 'none'}`);
      });
    },
  ),
  spec('SND-3', 'SUCCESS waits for the box also after many pushes', ['a simulated box'], async (t) => {
    const showFirst: OnShow = async (box, show) => {
      if (box.of('show').length <= MANY_PUSHES) await box.show(show);
    };
    const push = async (_: CheckContext, box: SimulatedBox) => {
      for (let count = 0; count < MANY_PUSHES; count += 1) {
        const order = t.newOrder();
        expectSuccess(await t.sendPush(t.pushBody(order, await t.generatedQr(order))), 'a push');
      }
      const { answer } = await startPush(t, box);
      await expectUnanswered(t, answer, `after ${MANY_PUSHES} pushes, before the box has said anything,`);
      await box.close();
      await answer.called;
    };
    await withBox(push, showFirst)(t);
  }),
  spec(
    'SND-3',
    'SUCCESS, with an empty message, is answered only after the box confirmed',
    ['a simulated box'],
    withBox(async (t, box) => {
      const { answer, show } = await startPush(t, box);
      const { pushId } = show;
      await expectUnanswered(t, answer, 'before the box has said anything');
      await box.send({ type: 'accepted', pushId });
      if (t.options.confirm === 'displayed') {
        await expectUnanswered(t, answer, 'before the QR is on the screen');
        await box.send({ type: 'shown', pushId });
      }
      const called = await answer.called;
      expectSuccess(called, 'once the box has confirmed');
      expectNoMessage(called);
    }, showNothing),
  ),
  spec(
    'SND-4',
    'a push without a confirmation is refused and withdrawn',
    ['a simulated box'],
    judgeTimeout,
    2 * DEADLINE_MAX_MS,
  ),
  gap(
    'SND-4',
    'a push without a confirmation is BOX_TIMEOUT',
    ['a simulated box'],
    withBox(async (t, box) => expectCode((await unconfirmed(t, box)).called, 'BOX_TIMEOUT', UNCONFIRMED), showNothing),
    2 * DEADLINE_MAX_MS,
  ),
  spec('SND-5', 'a push to a box that is off is refused at once', ['a simulated box'], async (t) => {
    const beganMs = systemClock.monotonicMs();
    expectRefused(await t.pushOrder(), 'a push to a box that is off');
    const tookMs = Math.round(systemClock.monotonicMs() - beganMs);
    if (tookMs > AT_ONCE_MS) throw new Mismatch(`the answer took ${tookMs} ms`);
  }),
  spec('SND-5', 'a push to a box that disconnects before its confirmation is refused', ['a simulated box'], async (t) =>
    expectRefused(await pushedToBoxLost(t), 'a push to a box that goes'),
  ),
  gap('SND-5', 'a push to a box that is off or disconnects is BOX_OFFLINE', ['a simulated box'], async (t) => {
    expectCode(await t.pushOrder(), 'BOX_OFFLINE', 'a push to a box that is off');
    expectCode(await pushedToBoxLost(t), 'BOX_OFFLINE', 'a push to a box that goes');
  }),
  gap('SND-6', 'a refusal by the box is answered with its code', ['a simulated box'], async (t) => {
    const codes = [...BOX_REFUSALS];
    const refuse: OnShow = async (box, { pushId }) => {
      const code = codes[(box.of('show').length - 1) % codes.length] ?? 'DISPLAY_FAULT';
      await box.send({ type: 'rejected', pushId, code, reason: 'as the bench says' });
    };
    await withSimulatedBox(
      t.run,
      () =>
        forEachCase(codes, async (code) => {
          const called = await t.pushOrder();
          expectCode(called, code, `when the box says ${code}`);
        }),
      refuse,
    );
  }),
];

const UNCONFIRMED = 'a push that the box does not confirm';

async function judgeTimeout(t: CheckContext): Promise<void> {
  await withSimulatedBox(
    t.run,
    async (box) => {
      const { called, pushId } = await unconfirmed(t, box);
      expectRefused(called, UNCONFIRMED);
      const withdrawal = await box.find('withdraw', (it) => it.pushId === pushId);
      if (withdrawal === undefined) throw new Mismatch('the box gets no withdrawal of the push');
    },
    showNothing,
  );
  await withSimulatedBox(t.run, async (box) => {
    if ((await box.waitFor('show', 1, QUIET_MS)) === undefined) return;
    throw new Mismatch('the box gets the push when it comes back');
  });
}

/** Waits for the answer to a push that the box does not confirm. Throws Mismatch when none comes. */
async function unconfirmed(t: CheckContext, box: SimulatedBox): Promise<{ called: Answer; pushId: string }> {
  const { time } = t.subject;
  const order = t.newOrder();
  const body = t.pushBody(order, await t.generatedQr(order));
  const answer = pending(t.post(PATHS.sendQr, body, { whileTimePasses: true }));
  const { pushId } = await box.expect('show');
  t.run.step('waiting for the deadline of the push');
  const endMs = time.clock.monotonicMs() + DEADLINE_MAX_MS;
  while (!answer.isAnswered() && time.clock.monotonicMs() < endMs) await passed(t, DEADLINE_STEP_MS);
  if (!answer.isAnswered()) throw new Mismatch(`no answer within ${DEADLINE_MAX_MS / 1_000} s`);
  return { called: await answer.called, pushId };
}

function pushedToBoxLost(t: CheckContext): Promise<Answer> {
  return withSimulatedBox(
    t.run,
    async (box) => {
      const { answer } = await startPush(t, box);
      await box.close();
      return answer.called;
    },
    showNothing,
  );
}

/** Lets time pass while a request is open that is not waiting for anything else. */
async function passed({ subject: { time } }: CheckContext, ms: number): Promise<void> {
  await time.wait(ms);
  await time.inRealTime(() => systemClock.sleep(1));
}
