import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { BOX_REFUSALS } from '../../src/protocol/codes.ts';
import type { DownOf } from '../../src/protocol/messages.ts';
import { connectFakeBox, type FakeBoxOptions } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { type Answer, BOX1, BOX2, type TestGateway, type TestOptions, testGateway } from './harness.ts';

const DEADLINE_MS = 5000;
const LIFETIME_MS = 300_000;
const RESEND_MS = 10_000;
const SUCCESS = { status: 'SUCCESS', message: '' };

/** A gateway whose clock stands still, with box 1 connected: what is answered is answered before the deadline. */
async function gatewayWithBox(change: Partial<FakeBoxOptions> = {}, options: TestOptions = {}) {
  const clock = new VirtualClock();
  const gateway = await testGateway({ clock, ...options });
  const connect = (more: Partial<FakeBoxOptions> = {}) =>
    connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt', onShow: () => undefined, ...change, ...more });
  const box = await connect();
  return { clock, gateway, box, connect };
}

/** Sends a push that nothing answers yet. */
function pushTo(gateway: TestGateway, change: Record<string, unknown> = {}) {
  const state: { answer: Answer | undefined } = { answer: undefined };
  const answered = gateway.sendQr(change).then((answer) => {
    state.answer = answer;
    return answer;
  });
  return { state, answered };
}

const failed = (code: string) => [400, { status: 'FAILED', message: code }];
const told = (answer: Answer) => [answer.status, answer.body];

/** The newest order, with its pushes. */
async function newestOrder(gateway: TestGateway) {
  const [order] = await gateway.mock('/orders');
  const { status, failure, shownOn, pushes } = order ?? {};
  return { status, failure, shownOn, pushes: (pushes as { status: string }[]).map((it) => it.status) };
}

/** Waits until the gateway has a message of this type from a box. */
async function heard(gateway: TestGateway, type: string): Promise<void> {
  await eventually(type, async () => JSON.stringify(await gateway.mock('/wire')).includes(`"${type}"`));
}

const ignoredReports = (gateway: TestGateway) => gateway.logged('report-ignored').map((it) => it.type);

describe.each(['mqtt', 'http'] as const)('a push over %s', (transport) => {
  it('SND-3 a push is answered with SUCCESS once the QR is on the screen, not when it is on the disk', async () => {
    const { gateway, box } = await gatewayWithBox({ transport });
    const { state, answered } = pushTo(gateway);
    const show = await box.next('show');
    await box.send({ type: 'accepted', pushId: show.pushId });
    await heard(gateway, 'accepted');
    expect(state.answer).toBeUndefined();
    await box.send({ type: 'shown', pushId: show.pushId });
    expect(told(await answered)).toEqual([200, SUCCESS]);
    expect(await newestOrder(gateway)).toEqual({
      status: 'shown',
      failure: null,
      shownOn: BOX1.terminalCode,
      pushes: ['shown'],
    });
  });

  it('SND-4 a push is withdrawn at the deadline, and a late confirmation changes nothing', async () => {
    const { clock, gateway, box } = await gatewayWithBox({ transport });
    const { answered } = pushTo(gateway);
    const { pushId } = await box.next('show');
    await box.send({ type: 'accepted', pushId });
    await heard(gateway, 'accepted');
    await clock.advance(DEADLINE_MS);
    expect(told(await answered)).toEqual(failed('BOX_TIMEOUT'));
    expect(await box.next('withdraw')).toMatchObject({ pushId, why: 'timeout' });
    const timedOut = { status: 'failed', failure: 'BOX_TIMEOUT', shownOn: null, pushes: ['failed'] };
    expect(await newestOrder(gateway)).toEqual(timedOut);

    await box.send({ type: 'shown', pushId });
    await eventually('the late report', () => ignoredReports(gateway).includes('shown'));
    expect(await newestOrder(gateway)).toEqual(timedOut);
  });

  it('SND-5 a push is answered at once when the box is lost while it is awaited, and withdrawn when it is back', async () => {
    const { gateway, box, connect } = await gatewayWithBox({ transport });
    const { answered } = pushTo(gateway);
    const { pushId } = await box.next('show');
    box.vanish();
    expect(told(await answered)).toEqual(failed('BOX_OFFLINE'));
    const again = await connect();
    expect(await again.next('withdraw')).toMatchObject({ pushId, why: 'timeout' });
  });

  it('SND-5 MSG-8 a push is answered at once when a newer session takes over', async () => {
    const { gateway, box, connect } = await gatewayWithBox({ transport });
    const { answered } = pushTo(gateway);
    const { pushId } = await box.next('show');
    const newer = await connect();
    expect(told(await answered)).toEqual(failed('BOX_OFFLINE'));
    expect(await newer.next('withdraw')).toMatchObject({ pushId });
  });

  it('SND-6 a push is answered with the code of the box', async () => {
    const onShow: FakeBoxOptions['onShow'] = (box, { pushId, orderId }) => {
      const code = BOX_REFUSALS.find((it) => it === orderId) ?? 'REPLACED';
      return box.send({ type: 'rejected', pushId, code, reason: 'as the test says' });
    };
    const { gateway } = await gatewayWithBox({ transport, onShow });
    for (const code of BOX_REFUSALS) {
      expect(told(await gateway.sendQr({ orderId: code }))).toEqual(failed(code));
      expect(gateway.refusals()).toEqual([code]);
      const order = { status: 'failed', failure: code, shownOn: null, pushes: ['failed'] };
      expect(await newestOrder(gateway)).toEqual(order);
    }
  });
});

describe('SND', () => {
  it('SND-3 a push is answered once the QR is on the disk where that is configured', async () => {
    const config = { confirm: 'accepted' };
    const { gateway, box } = await gatewayWithBox({}, { config });
    const { answered } = pushTo(gateway);
    const { pushId } = await box.next('show');
    await box.send({ type: 'accepted', pushId });
    expect(told(await answered)).toEqual([200, SUCCESS]);
    await box.send({ type: 'rejected', pushId, code: 'DISPLAY_FAULT', reason: 'later' });
    await eventually('the failure', async () => (await newestOrder(gateway)).failure === 'DISPLAY_FAULT');
  });

  it('SND-3 SND-8 an answered push is replaced on the screen without a change to its answer', async () => {
    const { gateway, box } = await gatewayWithBox({ onShow: (it, show) => it.shown(show) });
    expect(told(await gateway.sendQr())).toEqual([200, SUCCESS]);
    const { pushId, orderId } = await box.next('show');
    await box.send({ type: 'ended', pushId, orderId, how: 'replaced' }, pushId);
    expect((await box.next('ack')).reportIds).toEqual([pushId]);
    expect(await newestOrder(gateway)).toMatchObject({ status: 'replaced', pushes: ['ended'] });
  });

  it('SND-4 a push waits as long as configured', async () => {
    const { clock, gateway, box } = await gatewayWithBox({}, { config: { confirmTimeoutMs: 1234 } });
    const { state, answered } = pushTo(gateway);
    await box.next('show');
    await clock.advance(1233);
    expect(state.answer).toBeUndefined();
    await clock.advance(1);
    expect(told(await answered)).toEqual(failed('BOX_TIMEOUT'));
  });

  it('MSG-9 SND-4 a withdrawal is repeated at each welcome, until the box has ended the push', async () => {
    const { clock, gateway, box, connect } = await gatewayWithBox();
    const { answered } = pushTo(gateway);
    const { pushId, orderId } = await box.next('show');
    await clock.advance(DEADLINE_MS);
    await answered;
    await box.next('withdraw');
    box.vanish();
    const second = await connect();
    expect(await second.next('withdraw')).toMatchObject({ pushId });
    await second.send({ type: 'ended', pushId, orderId, how: 'withdrawn' }, pushId);
    await second.next('ack');
    await second.close();
    const third = await connect();
    // The ack comes after all that the welcome brought.
    await third.send({ type: 'ended', pushId, orderId, how: 'withdrawn' }, pushId);
    await third.next('ack');
    expect(third.of('withdraw')).toEqual([]);
    expect(await newestOrder(gateway)).toMatchObject({ status: 'failed', failure: 'BOX_TIMEOUT' });
  });

  it('MSG-9 SND-4 a withdrawal is repeated every 10 s, and not after the box has said that it has no such push', async () => {
    const { clock, gateway, box } = await gatewayWithBox();
    const { answered } = pushTo(gateway);
    const { pushId } = await box.next('show');
    await clock.advance(DEADLINE_MS);
    await answered;
    await box.next('withdraw');
    await clock.advance(RESEND_MS);
    expect(await box.next('withdraw', 2)).toMatchObject({ pushId, why: 'timeout' });
    await box.send({ type: 'rejected', pushId, code: 'WITHDRAWN', reason: 'it is not on the screen' });
    const stranger = crypto.randomUUID();
    await box.send({ type: 'ended', pushId: stranger, orderId: '', how: 'expired' }, stranger);
    await box.next('ack');
    await clock.advance(LIFETIME_MS);
    expect(box.of('withdraw')).toHaveLength(2);
    expect(gateway.logged('report-ignored')).toHaveLength(1);
  });

  it('SND-9 SND-3 a push is a new one once its lifetime is over, although a box that cannot be reached has not said so', async () => {
    const { clock, gateway, box } = await gatewayWithBox({ onShow: (it, show) => it.shown(show) });
    const repeat = async () => told(await gateway.sendQr({}, { authorization: `Bearer ${await gateway.token()}` }));
    expect(await repeat()).toEqual([200, SUCCESS]);
    await clock.advance(LIFETIME_MS - 1);
    expect(await repeat()).toEqual([200, SUCCESS]);
    expect(box.of('show')).toHaveLength(1);
    await clock.advance(1);
    expect(await repeat()).toEqual([200, SUCCESS]);
    expect(box.of('show')).toHaveLength(2);
  });

  it('MSG-4 a confirmation of an earlier session of the box is ignored', async () => {
    const { gateway, box, connect } = await gatewayWithBox();
    box.vanish();
    const newer = await connect({ onShow: () => undefined });
    const { answered } = pushTo(gateway);
    const { pushId } = await newer.next('show');
    const head = { v: 1, id: crypto.randomUUID(), sentAtMs: 1, sessionId: box.sessionId };
    await newer.sendText(newer.sealed({ ...head, type: 'shown', pushId })).catch(() => undefined);
    await newer.send({ type: 'rejected', pushId, code: 'DISPLAY_FAULT', reason: 'unplugged' });
    expect(told(await answered)).toEqual(failed('DISPLAY_FAULT'));
  });

  it('SND-5 a push is answered at once when the box is not connected, and nothing is kept', async () => {
    const gateway = await testGateway({ clock: new VirtualClock() });
    expect(told(await gateway.sendQr())).toEqual(failed('BOX_OFFLINE'));
    expect(await gateway.mock('/orders')).toEqual([]);
  });

  it('SND-5 a push is answered when the gateway stops', async () => {
    const { gateway, box } = await gatewayWithBox();
    const { answered } = pushTo(gateway);
    await box.next('show');
    await gateway.close();
    expect(told(await answered)).toEqual(failed('BOX_OFFLINE'));
    expect(gateway.log.filter((it) => it.level === 'error')).toEqual([]);
  });

  it.each([
    ['withdrawn', 'WITHDRAWN'],
    ['expired', 'WITHDRAWN'],
    ['dismissed', 'WITHDRAWN'],
    ['replaced', 'REPLACED'],
  ] as const)('SND-6 is answered when the box ends it unshown as %s: %s', async (how, code) => {
    const { gateway, box } = await gatewayWithBox();
    const { answered } = pushTo(gateway);
    const { pushId, orderId } = await box.next('show');
    await box.send({ type: 'ended', pushId, orderId, how }, pushId);
    expect(told(await answered)).toEqual(failed(code));
  });

  it('SND-6 a push is answered with WITHDRAWN when the order is cancelled meanwhile, and the box is told', async () => {
    const { gateway, box } = await gatewayWithBox();
    const { answered } = pushTo(gateway);
    const { pushId } = await box.next('show');
    await gateway.mock('/orders/DH001/cancel', 'POST');
    expect(told(await answered)).toEqual(failed('WITHDRAWN'));
    expect(await box.next('withdraw')).toMatchObject({ pushId, why: 'cancelled' });
    await box.send({ type: 'shown', pushId });
    await eventually('the late report', () => ignoredReports(gateway).includes('shown'));
    expect(await newestOrder(gateway)).toMatchObject({ status: 'cancelled', pushes: ['cancelled'] });
  });

  it('SND-3 a confirmation from another box is ignored', async () => {
    const { gateway, box, connect } = await gatewayWithBox();
    const other = await connect({ identity: BOX2 });
    const { state, answered } = pushTo(gateway);
    const { pushId } = await box.next('show');
    await other.shown({ pushId });
    await other.send({ type: 'rejected', pushId, code: 'DISPLAY_FAULT', reason: '' });
    await eventually('three strays', () => ignoredReports(gateway).length === 3);
    expect(state.answer).toBeUndefined();
    expect((await newestOrder(gateway)).pushes).toEqual(['sent']);
    await box.shown({ pushId });
    expect(told(await answered)).toEqual([200, SUCCESS]);
  });

  it('the gateway keeps at most 16 pushes of one box waiting: the oldest gives way', async () => {
    const { gateway, box } = await gatewayWithBox();
    const first = pushTo(gateway);
    const oldest = await box.next('show');
    const others = Array.from({ length: 16 }, (_, n) => pushTo(gateway, { orderId: `DH1${n}` }));
    expect(told(await first.answered)).toEqual(failed('REPLACED'));
    expect(await box.next('withdraw')).toMatchObject({ pushId: oldest.pushId });
    await box.next('show', 17);
    const shows: DownOf<'show'>[] = box.of('show').slice(1);
    for (const show of shows) await box.shown(show);
    for (const { answered } of others) expect(told(await answered)).toEqual([200, SUCCESS]);
  });
});
