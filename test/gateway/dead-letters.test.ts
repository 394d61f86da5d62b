import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import {
  ACCOUNT,
  BOX1,
  BOX2,
  FOREIGN_ACCOUNT,
  type PartnerCall,
  partnerServer,
  processed,
  status,
  type TestGateway,
  testGateway,
} from './harness.ts';

const HOUR_MS = 3_600_000;
/** Of one partner, and of them those that are no first attempts. */
const [RUNNING_MAX, REPEATED_MAX] = [20, 15];

interface CallbackView {
  id: string;
  partner: string;
  status: string;
  attemptCount: number;
  attempts: { error: string | null }[];
}
type Reply = Parameters<typeof partnerServer>[number];

/** A partner that answers all callbacks alike, until it is told otherwise. */
async function switchable(first: Reply) {
  let reply = first;
  const server = await partnerServer((...given) => reply(...given));
  return { ...server, answers: (next: Reply) => (reply = next) };
}

/** A gateway on a clock that stands still, with two partners and no time for failures. */
async function twoPartners(config: object = { callbackRetryWaitsMs: [], callbackLateRetries: { forSeconds: 0 } }) {
  const clock = new VirtualClock();
  const [demo, other] = [await switchable(status(500)), await switchable(status(500))];
  const partnerOf = (username: string, { bankAccount }: typeof ACCOUNT, url: string) => {
    return { username, password: `${username}-secret`, accounts: [bankAccount], callback: { url } };
  };
  const partners = [partnerOf('demo', ACCOUNT, demo.url), partnerOf('other', FOREIGN_ACCOUNT, other.url)];
  const gateway = await testGateway({ clock, config: { mqtt: null, partners, ...config } });
  const authorization = `Bearer ${await gateway.token('other')}`;
  const pay = async (count: number, partner = 'demo') => {
    const change = partner === 'demo' ? {} : { bankAccount: FOREIGN_ACCOUNT.bankAccount };
    const headers = partner === 'demo' ? {} : { authorization };
    for (let i = 0; i < count; i += 1) await gateway.testCallback(change, headers);
  };
  return { clock, gateway, demo, other, pay };
}

const listed = (gateway: TestGateway, state: string) =>
  gateway.mock<CallbackView[]>(`/callbacks?limit=500&status=${state}`);
const become = (gateway: TestGateway, state: string, count: number) =>
  eventually(`${count} ${state}`, async () => {
    const rows = await listed(gateway, state);
    return rows.length === count && rows;
  });

async function resend(gateway: TestGateway, choice?: object | '') {
  const body = choice === '' ? '' : JSON.stringify(choice);
  const json = { headers: { 'content-type': 'application/json' }, body };
  const url = `${gateway.origin}/_mock/callbacks/resend`;
  const answer = await fetch(url, { method: 'POST', ...(choice === undefined ? {} : json) });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

describe('after the retry schedule', () => {
  it('SYN-4 a callback is tried hourly for three days, then it is a dead letter, that the list of those has', async () => {
    const { clock, gateway, demo, pay } = await twoPartners({ callbackRetryWaitsMs: [1000] });
    await pay(1);
    const waits = [1000, ...Array.from({ length: 72 }, () => HOUR_MS)];
    for (const [i, waitMs] of waits.entries()) {
      await eventually(`wait ${i + 1}`, () => demo.calls.length === i + 1 && clock.sleeping().includes(waitMs));
      await clock.advance(waitMs - 1);
      expect(demo.calls).toHaveLength(i + 1);
      await clock.advance(1);
    }
    const [dead] = await become(gateway, 'failed', 1);
    expect([dead?.attemptCount, dead?.attempts.length]).toEqual([waits.length + 1, 20]);
    expect((await gateway.mock<CallbackView & object>(`/callbacks/${dead?.id}`)).attempts).toHaveLength(74);
    await clock.advance(10 * HOUR_MS);
    expect(demo.calls).toHaveLength(waits.length + 1);
    expect(await listed(gateway, 'pending')).toEqual([]);
  });

  it('SYN-4 a callback is delivered after its retry schedule when the partner comes back', async () => {
    const { clock, gateway, demo, pay } = await twoPartners({ callbackRetryWaitsMs: [] });
    await pay(30);
    await eventually('the first attempts', () => demo.calls.length === 30);
    await eventually('the wait', () => clock.sleeping().includes(HOUR_MS));
    demo.answers(processed);
    await clock.advance(HOUR_MS);
    await become(gateway, 'delivered', 30);
  });

  it.each([
    [{ everySeconds: 1, forSeconds: 2000 }, 'at most 1000 attempts'],
    [{ everySeconds: 0 }, 'everySeconds: expected a number of at least 1'],
  ])('SYN-4 %j is refused: %s', async (callbackLateRetries, reason) => {
    await expect(twoPartners({ callbackLateRetries })).rejects.toThrow(reason);
  });
});

describe('dead letters', () => {
  it('SYN-5 all dead letters are sent again to one partner by one call, few at a time', async () => {
    const { clock, gateway, demo, other, pay } = await twoPartners();
    await pay(45);
    await pay(3, 'other');
    await become(gateway, 'failed', 48);
    let [running, most] = [0, 0];
    const held: (() => void)[] = [];
    demo.answers((call: PartnerCall, response: ServerResponse, request) => {
      running += 1;
      most = Math.max(most, running);
      held.push(() => {
        running -= 1;
        processed(call, response, request);
      });
    });
    other.answers(processed);
    expect(await resend(gateway, { partner: 'demo' })).toEqual({
      status: 202,
      body: { status: 'SUCCESS', message: '', callbacks: 45, more: false },
    });
    await eventually('the first of them', () => running === REPEATED_MAX);
    await eventually('all of them', () => {
      held.shift()?.();
      return demo.calls.length === 90 && held.length === 0;
    });
    expect((await become(gateway, 'delivered', 45)).every((it) => it.partner === 'demo')).toBe(true);
    expect(most).toBe(REPEATED_MAX);
    expect(other.calls).toHaveLength(3);
    expect(new Set(demo.calls.map((it) => it.body)).size).toBe(45);

    expect((await resend(gateway)).body).toMatchObject({ callbacks: 3 });
    await become(gateway, 'delivered', 48);
    expect((await resend(gateway, {})).body).toMatchObject({ callbacks: 0, more: false });
    await clock.advance(HOUR_MS);
    expect([demo.calls.length, other.calls.length]).toEqual([90, 6]);
  });

  it('SYN-5 dead letters of a time alone are sent again, and retried by their schedule', async () => {
    const config = { callbackRetryWaitsMs: [1000, 2000], callbackLateRetries: { forSeconds: 0 } };
    const { clock, gateway, demo, pay } = await twoPartners(config);
    const times: string[] = [];
    for (let i = 0; i < 3; i += 1) {
      times.push(new Date(clock.wallMs()).toISOString());
      await pay(1);
      for (const waitMs of config.callbackRetryWaitsMs) {
        await eventually('the wait', () => clock.sleeping().includes(waitMs));
        await clock.advance(waitMs);
      }
      await become(gateway, 'failed', i + 1);
    }
    expect((await resend(gateway, { from: times[1], to: times[2] })).body).toMatchObject({ callbacks: 1 });
    await eventually('the attempt', () => demo.calls.length === 10);
    await eventually('the next wait', () => clock.sleeping().includes(2000));
    demo.answers(processed);
    expect((await resend(gateway, { status: 'pending' })).body).toMatchObject({ callbacks: 1 });
    const [delivered] = await become(gateway, 'delivered', 1);
    expect(await listed(gateway, 'failed')).toHaveLength(2);
    expect(demo.calls.at(-1)?.body).toBe(demo.calls[3]?.body);
    expect(delivered?.attemptCount).toBe(5);
  });

  it.each([
    [{ from: 'yesterday' }, 'from', 400, 'E46'],
    [{ status: 'delivered' }, 'status', 400, 'E46'],
    [{ partners: ['demo'] }, 'partners', 400, 'E46'],
    [{ partner: 'nobody' }, 'partner', 404, 'E67'],
    ['' as const, 'empty', 400, 'E46'],
  ])('SYN-5 are not sent again for %j', async (choice, field, status, message) => {
    const { gateway } = await twoPartners();
    expect(await resend(gateway, choice)).toEqual({ status, body: { status: 'FAILED', message } });
    expect(gateway.log.at(-1)).toMatchObject({ event: 'request-refused', reason: expect.stringContaining(field) });
  });

  it('SYN-4 callbacks sent again from the dead letters do not hold up those of new payments', async () => {
    const { gateway, demo, pay } = await twoPartners();
    await pay(40);
    await become(gateway, 'failed', 40);
    demo.answers(() => undefined);
    await resend(gateway);
    await eventually('as many as may be', () => demo.calls.length === 40 + REPEATED_MAX);
    demo.answers(processed);
    await pay(10);
    await become(gateway, 'delivered', 10);
    expect(demo.calls).toHaveLength(50 + REPEATED_MAX);
    demo.answers(() => undefined);
    await pay(10);
    await eventually('no more than these', () => demo.calls.length === 50 + RUNNING_MAX);
    expect((await listed(gateway, 'delivered')).length).toBe(10);
  });

  it('SYN-5 dead letters are counted in health and metrics, beside what waits and for how long', async () => {
    const { clock, gateway, demo, pay } = await twoPartners({ callbackRetryWaitsMs: [HOUR_MS] });
    demo.answers(status(400));
    await pay(2);
    await become(gateway, 'failed', 2);
    demo.answers(status(500));
    await pay(1);
    await clock.advance(60_000);
    await pay(1, 'other');
    await eventually(
      'the attempts',
      () => gateway.log.filter((it) => /^callback-(delivered|deferred|failed)$/.test(String(it.event))).length === 4,
    );
    await clock.advance(30_000);
    const told = { waiting: 2, failed: 2, oldestWaitingSeconds: 90 };
    const health = await fetch(`${gateway.origin}/healthz`);
    expect([health.status, await health.json()]).toEqual([200, { status: 'ok', mode: 'sandbox', callbacks: told }]);
    const partners = [
      { partner: 'demo', waiting: 1, failed: 2 },
      { partner: 'other', waiting: 1, failed: 0 },
    ];
    expect(await gateway.mock<object>('/callbacks/backlog')).toEqual({ ...told, partners });
    const text = await (await fetch(`${gateway.origin}/metrics`)).text();
    expect(text).toContain('\npaybox_gateway_callbacks_waiting 2\n');
    expect(text).toContain('\npaybox_gateway_callbacks_failed 2\n');
    expect(text).toContain('\npaybox_gateway_callbacks_oldest_waiting_seconds 90\n');
  });
});

describe('a payment that fits no order', () => {
  it('CBK-7 a payment that fits no order lists which boxes of its account have not reported it, since when, and whether they are online', async () => {
    const gateway = await testGateway({ callback: { url: 'http://127.0.0.1:1/' } });
    const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
    await gateway.testCallback({ content: 'NO ORDER' });
    await eventually('the payment', () => box.received.some((it) => it.type === 'payment'));
    const payment = async () => {
      const [newest] = await gateway.mock<{ boxes: Record<string, unknown>[] }[]>('/payments');
      return newest?.boxes.toSorted((a, b) => String(a.terminalCode).localeCompare(String(b.terminalCode)));
    };
    const time = expect.stringMatching(/^\d{4}-.*Z$/);
    const unreported = { since: time, registered: true, late: false, reportedAt: null, recorded: null };
    expect(await payment()).toEqual([
      { ...unreported, terminalCode: BOX1.terminalCode, online: true, toldAt: time },
      { ...unreported, terminalCode: BOX2.terminalCode, online: false, toldAt: null },
    ]);
  });
});
