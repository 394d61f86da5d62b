import { systemClock } from '../../../lib/clock.ts';
import { BOX_REFUSALS } from '../../../protocol/codes.ts';
import { PATHS } from '../../../protocol/http-api.ts';
import { Mismatch, Unmet } from '../conformance.ts';
import { each, expectCode, expectSuccess, ownQr, pay, post, pushBody, qrOf } from './asks.ts';
import { type Called, codeOf, told } from './client.ts';
import { recordOf } from './json.ts';
import { type OnShow, type PlayedBox, withBox } from './played-box.ts';
import { send } from './push.ts';
import type { Order, ServiceCheck, ServiceRun } from './subject.ts';

/** An answer that is not there after this, in everybody's time, waits for something. */
const HELD_MS = 300;
/** The longest deadline of a push, and the steps in which it is waited for. */
const DEADLINE_MAX_MS = 65_000;
const DEADLINE_STEP_MS = 500;
/** What is answered at once is answered before any deadline. */
const AT_ONCE_MS = 4_000;
/** For what must not come. */
const QUIET_MS = 2_000;

const hold: OnShow = async () => undefined;

/** A push that is on its way to the played box. */
async function started(run: ServiceRun, box: PlayedBox, order: Order = run.subject.newOrder()) {
  const before = box.of('show').length;
  const qrCode = await qrOf(run, order);
  const answer = settling(send(run, pushBody(run, order, qrCode)));
  const show = await box.next('show', before + 1);
  return { order, qrCode, answer, show };
}

/** A request under way, of which can be told whether it is answered. */
interface Settling {
  called: Promise<Called>;
  isAnswered(): boolean;
}

function settling(called: Promise<Called>): Settling {
  let isAnswered = false;
  const end = () => {
    isAnswered = true;
  };
  // Whoever awaits `called` has the error.
  called.then(end, end);
  return { called, isAnswered: () => isAnswered };
}

async function expectHeld(run: ServiceRun, { called, isAnswered }: Settling, what: string): Promise<void> {
  await run.subject.pace.during(() => systemClock.sleep(HELD_MS));
  if (isAnswered()) throw new Mismatch(`${what} the push is answered ${told(await called)}`);
}

/** A push that the box has shown. */
async function shown(run: ServiceRun, order: Order, change: object = {}): Promise<void> {
  const qrCode = ownQr(run.subject, order);
  const called = await send(run, pushBody(run, order, qrCode, { ...change }));
  if (codeOf(called) !== undefined) throw new Unmet(`needs a push that is shown, this one is answered ${told(called)}`);
}

function expectNoMessage({ json, text }: Called): void {
  if (recordOf(json).message !== '') throw new Mismatch(`expected an empty message, is ${text}`);
}

/** A push to the box that is on. Throws Unmet when it is off. */
async function pushedToBoxOn(run: ServiceRun): Promise<{ called: Called; qrCode: string }> {
  const order = run.subject.newOrder();
  const qrCode = await qrOf(run, order);
  const { terminalCode = '', serialNumber = '' } = run.subject.options.boxOn ?? {};
  const called = await send(run, pushBody(run, order, qrCode, { terminalCode, serialNumber }));
  if (codeOf(called) === 'BOX_OFFLINE') throw new Unmet('needs a box that is on: turn it on');
  return { called, qrCode };
}

export const boxChecks: readonly ServiceCheck[] = [
  {
    clause: 'SND-3',
    title: 'a push to a box that is on is SUCCESS with an empty message',
    level: 'spec',
    needs: ['a box that is on'],
    run: async (run) => {
      const { called } = await pushedToBoxOn(run);
      expectSuccess(called, 'the push');
      expectNoMessage(called);
    },
  },
  {
    clause: 'SND-3',
    title: 'when it is SUCCESS, the QR is on the screen',
    level: 'spec',
    needs: ['a box that is on', 'a screen'],
    run: async (run) => {
      const { called, qrCode } = await pushedToBoxOn(run);
      if (codeOf(called) !== undefined)
        throw new Unmet(`needs a push that is shown, this one is answered ${told(called)}`);
      const seen = await run.subject.pace.during(async () => run.subject.options.seeQr?.());
      if (seen !== qrCode) throw new Mismatch(`the screen has ${seen ?? 'no QR'} after SUCCESS`);
    },
  },
  {
    clause: 'SND-3',
    title: 'the box is told to show the QR that was pushed, and nothing else',
    level: 'spec',
    needs: ['a box to play'],
    run: (run) =>
      withBox(run, async (box) => {
        const { order, qrCode, answer, show } = await started(run, box);
        expectSuccess(await answer.called, 'a push that the box shows');
        const { bankAccount } = run.subject.options.account;
        const expected = { qrCode, bankAccount, amount: order.amount, content: order.content, orderId: order.content };
        await each(Object.entries(expected), async ([field, value]) => {
          const actual = recordOf(show)[field];
          if (actual !== value) throw new Mismatch(`${field}: expected ${value}, the box is told ${String(actual)}`);
        });
      }),
  },
  {
    clause: 'SND-3',
    title: 'SUCCESS, with an empty message, is answered only after the box confirmed',
    level: 'spec',
    needs: ['a box to play'],
    run: (run) =>
      withBox(
        run,
        async (box) => {
          const { answer, show } = await started(run, box);
          const { pushId } = show;
          await expectHeld(run, answer, 'before the box has said anything');
          await box.send({ type: 'accepted', pushId });
          if (run.subject.options.confirm === 'displayed') {
            await expectHeld(run, answer, 'before the QR is on the screen');
            await box.send({ type: 'shown', pushId });
          }
          const called = await answer.called;
          expectSuccess(called, 'once the box has confirmed');
          expectNoMessage(called);
        },
        hold,
      ),
  },
  {
    clause: 'SND-4',
    title: 'without a confirmation it is BOX_TIMEOUT, and the push is taken back',
    level: 'spec',
    needs: ['a box to play'],
    timeoutMs: 2 * DEADLINE_MAX_MS,
    run: judgeTimeout,
  },
  {
    clause: 'SND-5',
    title: 'a box that is off is BOX_OFFLINE, at once',
    level: 'spec',
    needs: ['a box to play'],
    run: async (run) => {
      const order = run.subject.newOrder();
      const body = pushBody(run, order, ownQr(run.subject, order));
      const beganMs = systemClock.monotonicMs();
      expectCode(await send(run, body), 'BOX_OFFLINE', 'a push to a box that is off');
      const tookMs = Math.round(systemClock.monotonicMs() - beganMs);
      if (tookMs > AT_ONCE_MS) throw new Mismatch(`the answer took ${tookMs} ms`);
    },
  },
  {
    clause: 'SND-5',
    title: 'a box that is lost while its confirmation is awaited is BOX_OFFLINE',
    level: 'spec',
    needs: ['a box to play'],
    run: (run) =>
      withBox(
        run,
        async (box) => {
          const { answer } = await started(run, box);
          await box.close();
          expectCode(await answer.called, 'BOX_OFFLINE', 'a push to a box that goes');
        },
        hold,
      ),
  },
  {
    clause: 'SND-6',
    title: 'a refusal by the box is answered with its code',
    level: 'spec',
    needs: ['a box to play'],
    run: async (run) => {
      const codes = [...BOX_REFUSALS];
      const refuse: OnShow = async (box, { pushId }) => {
        const code = codes[(box.of('show').length - 1) % codes.length] ?? 'DISPLAY_FAULT';
        await box.send({ type: 'rejected', pushId, code, reason: 'as the bench says' });
      };
      await withBox(
        run,
        () =>
          each(codes, async (code) => {
            const order = run.subject.newOrder();
            const called = await send(run, pushBody(run, order, ownQr(run.subject, order)));
            expectCode(called, code, `when the box says ${code}`);
          }),
        refuse,
      );
    },
  },
  {
    clause: 'SND-7',
    title: 'a QR that the partner made himself is shown',
    level: 'gap',
    needs: ['a box to play'],
    run: (run) =>
      withBox(run, async () => {
        const order = run.subject.newOrder();
        expectSuccess(
          await send(run, pushBody(run, order, ownQr(run.subject, order))),
          "a push of the partner's own QR",
        );
      }),
  },
  {
    clause: 'SND-8',
    title: 'a newer push goes to the box although one is on its screen',
    level: 'spec',
    needs: ['a box to play'],
    run: (run) =>
      withBox(run, async (box) => {
        await shown(run, run.subject.newOrder());
        const order = run.subject.newOrder();
        expectSuccess(await send(run, pushBody(run, order, ownQr(run.subject, order))), 'a newer push');
        if (box.of('show').at(-1)?.orderId !== order.content)
          throw new Mismatch('the box is not told of the newer push');
      }),
  },
  {
    clause: 'SND-9',
    title:
      'the same orderId and QR is one push while it is awaited and on the screen; without an orderId it is a new one',
    level: 'gap',
    needs: ['a box to play'],
    run: judgeRepeated,
  },
  {
    clause: 'CBK-7',
    title: 'a credit is told to the box that shows the order, a debit is not',
    level: 'spec',
    needs: ['a box to play', 'sandbox'],
    run: (run) =>
      withBox(run, async (box) => {
        const order = run.subject.newOrder();
        await shown(run, order);
        const [show] = box.of('show');
        await pay(run, order, { transType: 'D' });
        if ((await box.comes('payment', 1, QUIET_MS)) !== undefined) throw new Mismatch('the box is told of a debit');
        const transactionId = await pay(run, order);
        const payment = await box.comes('payment');
        if (payment === undefined) throw new Mismatch('the box is not told of a credit');
        const expected = { transactionId, pushId: show?.pushId, orderId: order.content, amount: order.amount };
        await each(Object.entries(expected), async ([field, value]) => {
          const actual = recordOf(payment)[field];
          if (actual !== value) throw new Mismatch(`${field}: expected ${value}, the box is told ${String(actual)}`);
        });
      }),
  },
];

async function judgeTimeout(run: ServiceRun): Promise<void> {
  const { pace } = run.subject;
  const came = Promise.withResolvers<string>();
  await withBox(
    run,
    async (box) => {
      const order = run.subject.newOrder();
      const body = pushBody(run, order, await qrOf(run, order));
      const answer = settling(post(run, PATHS.sendQr, body, { isAwaitingTime: true }));
      const pushId = await pace.during(() => Promise.race([came.promise, answer.called]));
      run.step('waiting for the deadline of the push');
      const endMs = pace.clock.monotonicMs() + DEADLINE_MAX_MS;
      while (!answer.isAnswered() && pace.clock.monotonicMs() < endMs) await passed(run, DEADLINE_STEP_MS);
      if (!answer.isAnswered()) throw new Mismatch(`no answer within ${DEADLINE_MAX_MS / 1_000} s`);
      expectCode(await answer.called, 'BOX_TIMEOUT', 'a push that the box does not confirm');
      const withdrawal = await box.comes('withdraw');
      if (withdrawal === undefined || withdrawal.pushId !== pushId)
        throw new Mismatch('the box is not told to take the push back');
    },
    async (_box, { pushId }) => came.resolve(pushId),
  );
  await withBox(run, async (box) => {
    if ((await box.comes('show', 1, QUIET_MS)) === undefined) return;
    throw new Mismatch('the box is told to show the push when it comes back');
  });
}

/** Time goes on while a request is under way that waits for nothing else. */
async function passed({ subject: { pace } }: ServiceRun, ms: number): Promise<void> {
  await pace.wait(ms);
  await pace.during(() => systemClock.sleep(1));
}

async function judgeRepeated(run: ServiceRun): Promise<void> {
  await withBox(
    run,
    async (box) => {
      const { order, qrCode, answer, show } = await started(run, box);
      const body = pushBody(run, order, qrCode);
      const again = settling(send(run, body));
      await expectHeld(run, again, 'a repetition before the box confirms:');
      await box.show(show);
      expectSuccess(await answer.called, 'the push');
      expectSuccess(await again.called, 'its repetition while it is awaited');
      expectSuccess(await send(run, body), 'its repetition while it is on the screen');
      if (box.of('show').length > 1) throw new Mismatch('the box is told of it more than once');
      const nameless = settling(send(run, { ...body, orderId: '' }));
      const second = await box.comes('show', 2);
      if (second === undefined) throw new Mismatch('a push without an orderId is not a new one');
      await box.show(second);
      expectSuccess(await nameless.called, 'a push without an orderId');
    },
    hold,
  );
}
