import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { FAULT_NAMES, type FaultName, faultKind, magicContent } from '../../src/protocol/faults.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { askFaults, faults } from './faults.ts';
import { ACCOUNT, BOX1, failed, partnerServer, push, SEND_QR, type TestGateway, testGateway } from './harness.ts';

const AT_GATEWAY = FAULT_NAMES.filter((name) => faultKind(name).place !== 'box');
const HERE = { config: { mqtt: null } };
const post = (gateway: TestGateway, body: unknown) => askFaults(gateway, '', 'POST', body);
const happened = (gateway: TestGateway, fault: string) =>
  gateway.logged('fault-triggered').filter((it) => it.fault === fault);
/** Whether each of so many pushes to nobody is answered 500. */
const tries = async (gateway: TestGateway, count: number) => {
  const answers: boolean[] = [];
  for (let n = 0; n < count; n += 1) answers.push((await gateway.sendQr()).status === 500);
  return answers;
};

describe('/_mock/faults', () => {
  it('FLT-1 /_mock/faults lists what can be ordered, and what stands until it is ended', async () => {
    const gateway = await testGateway(HERE);
    const offered = await faults(gateway);
    expect(offered.faults.map((it) => it.name)).toEqual(AT_GATEWAY);
    for (const { name, ...rest } of offered.faults) {
      const { place, about, seconds = null } = faultKind(name as FaultName);
      const isPerBox = name !== 'broker-killed' && name !== 'clock-skew';
      const magic = isPerBox ? magicContent(name as FaultName) : null;
      expect(rest).toEqual({ place, about, seconds, magic, isPerBox });
    }
    expect(offered.standing).toEqual([]);
    const asked = { fault: 'push-lost', box: BOX1.terminalCode, content: 'DH1', times: 3, chance: 0.5, seed: 7 };
    const first = await post(gateway, asked);
    expect(first).toEqual({
      status: 201,
      body: { ...asked, id: expect.stringMatching(/^[0-9a-f-]{36}$/), happened: 0 },
    });
    const second = await post(gateway, { fault: 'link-slow', seconds: 1 });
    expect((await faults(gateway)).standing).toEqual([first.body, second.body]);
    const { id } = first.body as { id: string };
    expect(await askFaults(gateway, `/${id}`, 'DELETE')).toEqual({ status: 204, body: undefined });
    expect(await askFaults(gateway, `/${id}`, 'DELETE')).toMatchObject({ status: 404, body: { message: 'E96' } });
    expect((await faults(gateway)).standing).toMatchObject([{ fault: 'link-slow' }]);
    expect(await askFaults(gateway, '', 'DELETE')).toEqual({ status: 204, body: undefined });
    expect((await faults(gateway)).standing).toEqual([]);
    expect(gateway.logged('fault-ended').map((it) => it.fault)).toEqual(['push-lost', 'link-slow']);
  });

  it('FLT-2 /_mock/faults refuses an illegal order, with its code and the reason', async () => {
    const gateway = await testGateway(HERE);
    for (const [body, code, reason] of [
      ['{', 'E46', 'UTF-8 JSON'],
      [[], 'E46', 'body'],
      [{ fault: 'nothing' }, 'E46', 'fault: expected one of'],
      [{ fault: 'push-lost', colour: 1 }, 'E46', 'colour'],
      [{ fault: 'push-lost', box: 'VVB999999' }, 'E35', 'VVB999999 is not in the system'],
      [{ fault: 'disk-full' }, 'E46', 'fault: disk-full happens in a box'],
      [{ fault: 'link-cut', content: 'DH1' }, 'E46', 'content: link-cut'],
      [{ fault: 'clock-skew', box: BOX1.terminalCode }, 'E46', 'box: clock-skew'],
      [{ fault: 'half-open', times: 2 }, 'E46', 'times: half-open'],
      [{ fault: 'broker-killed' }, 'E46', 'this gateway has none'],
    ] as const) {
      const refusal = { status: 'FAILED', message: code, reason: expect.stringContaining(reason) };
      expect(await post(gateway, body)).toEqual({ status: 400, body: refusal });
      expect(gateway.refusals()).toEqual([code]);
      expect((await faults(gateway)).standing).toEqual([]);
    }
  });

  it('FLT-1 /_mock/faults lets 100 faults stand, and no more', async () => {
    const gateway = await testGateway(HERE);
    const order = { fault: 'push-lost' };
    for (let n = 0; n < 100; n += 1) expect((await post(gateway, order)).status).toBe(201);
    expect(await post(gateway, order)).toMatchObject({ status: 400, body: { message: 'E46' } });
    await askFaults(gateway, '', 'DELETE');
    expect((await post(gateway, order)).status).toBe(201);
  });

  it('FLT-1 /_mock/faults is for admins only', async () => {
    const gateway = await testGateway({ config: { mqtt: null, adminToken: 'A-long-admin-token-of-a-test' } });
    const order = { fault: 'push-lost' };
    for (const [method, body] of [['GET'], ['POST', order], ['DELETE']] as const) {
      expect(await askFaults(gateway, '', method, body)).toMatchObject({ status: 401, body: { message: 'E74' } });
    }
    const admin = { authorization: 'Bearer A-long-admin-token-of-a-test' };
    expect((await askFaults(gateway, '', 'POST', order, admin)).status).toBe(201);
  });

  it('FLT-2 FLT-4 outside of a sandbox nothing can be ordered, and contents mean nothing', async () => {
    const gateway = await testGateway({ config: { sandbox: false } });
    expect(await faults(gateway)).toEqual({ faults: [], standing: [] });
    expect(await post(gateway, { fault: 'push-lost' })).toMatchObject({ status: 400, body: { message: 'E75' } });
    await connectFakeBox({ gateway, identity: BOX1, transport: 'http' });
    for (const fault of ['service-500', 'token-expired', 'box-offline', 'push-lost', 'link-cut'] as const) {
      const content = magicContent(fault);
      expect((await gateway.generate({ content })).status).toBe(200);
      expect((await gateway.sendQr({ content, orderId: fault })).status).toBe(200);
    }
    expect(gateway.log.filter((it) => String(it.event).startsWith('fault'))).toEqual([]);
  });
});

describe('how often a fault happens', () => {
  it('FLT-3 a fault happens once, or as often as is said', async () => {
    const gateway = await testGateway(HERE);
    await post(gateway, { fault: 'service-500' });
    expect(await tries(gateway, 2)).toEqual([true, false]);
    const { body } = await post(gateway, { fault: 'service-500', times: 2 });
    expect(await tries(gateway, 1)).toEqual([true]);
    expect((await faults(gateway)).standing).toEqual([{ ...(body as object), happened: 1 }]);
    expect(await tries(gateway, 2)).toEqual([true, false]);
    expect((await faults(gateway)).standing).toEqual([]);
    expect(happened(gateway, 'service-500')).toHaveLength(3);
  });

  it('FLT-3 a fault with a duration happens each time while it lasts', async () => {
    const gateway = await testGateway(HERE);
    await post(gateway, { fault: 'service-500', seconds: 1 });
    expect(await tries(gateway, 3)).toEqual([true, true, true]);
    await eventually('its end', async () => (await faults(gateway)).standing.length === 0);
    expect(await tries(gateway, 1)).toEqual([false]);
  });

  it('FLT-3 a fault happens by chance, which is the same for the same seed', async () => {
    const gateway = await testGateway(HERE);
    const choices = async (seed: number) => {
      await post(gateway, { fault: 'service-500', times: 100, chance: 0.5, seed });
      const made = await tries(gateway, 30);
      await askFaults(gateway, '', 'DELETE');
      return made;
    };
    const first = await choices(1);
    expect(await choices(1)).toEqual(first);
    expect(await choices(2)).not.toEqual(first);
    expect(first.filter((it) => it).length).toBeGreaterThan(5);
    expect(first.filter((it) => !it).length).toBeGreaterThan(5);
    expect((await post(gateway, { fault: 'clock-skew', chance: 0 })).body).toMatchObject({ happened: 0 });
    expect((await faults(gateway)).standing).toEqual([]);
  });
});

/** The partner of these tests, for a gateway of his own. */
const demo = (url: string) => ({
  username: 'demo',
  password: 'demo-secret',
  accounts: [ACCOUNT.bankAccount],
  callback: { url },
});

describe('magic contents', () => {
  /** A gateway whose clock goes on a second at each question whether something is done. */
  const inHaste = async () => {
    const clock = new VirtualClock();
    const partner = await partnerServer();
    const config = { callbackRetryWaitsMs: [10, 10], partners: [demo(partner.url)] };
    const gateway = await testGateway({ clock, config });
    const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'http', onShow: () => undefined });
    const soon = (what: string, isDone: () => boolean | Promise<boolean>) =>
      eventually(what, async () => (await isDone()) || clock.advance(1_000).then(() => false));
    const done = async <T>(what: string, work: Promise<T>): Promise<T> => {
      let isOver = false;
      void work.finally(() => (isOver = true));
      await soon(what, () => isOver);
      return work;
    };
    return { gateway, partner, box, soon, done };
  };

  it.each(AT_GATEWAY)('FLT-4 magic contents order %s from the program of a partner', async (fault) => {
    const { gateway, box, soon, done } = await inHaste();
    const content = magicContent(fault);
    const made = await done('generate', gateway.generate({ content }));
    const sent = push({ content, qrCode: made.body.qrCode ?? push().qrCode, orderId: '' });
    await done('send-qr', gateway.post(SEND_QR, sent));
    await done('the test callback', gateway.testCallback({ content }));
    await soon(`${fault} in the log`, () => happened(gateway, fault).length > 0);
    expect(gateway.logged('fault-triggered').filter((it) => it.fault !== fault)).toEqual([]);
    expect((await askFaults(gateway, '', 'DELETE')).status).toBe(204);
    const replayed = fault === 'link-twice' ? [expect.stringContaining('MESSAGE_REPLAYED')] : [];
    expect(box.faults.splice(0).map(String)).toEqual(replayed);
  });

  it.each(['broker-killed', 'clock-skew'] as const)('FLT-4 order no %s where other partners are', async (fault) => {
    const gateway = await testGateway();
    await connectFakeBox({ gateway, identity: BOX1, transport: 'http' });
    const { magic } = (await faults(gateway)).faults.find(({ name }) => name === fault) ?? {};
    expect(magic).toBe(null);
    const refused = await gateway.sendQr({ content: magicContent(fault) });
    expect(refused).toMatchObject({ status: 400, body: failed('FAULT_UNKNOWN') });
    expect(refused.headers.get('x-paybox-reason')).toContain(`${fault} is for admins`);
    expect((await faults(gateway)).standing).toEqual([]);
    expect(happened(gateway, fault)).toEqual([]);
    expect((await post(gateway, { fault })).status).toBe(201);
  });

  it('FLT-12 magic contents of no fault are refused, and the refusal lists those that there are', async () => {
    const gateway = await testGateway({ config: { mqtt: null } });
    const contents = ['FAULT', 'FAULT PUSH THRICE', 'FAULT push twice', 'FAULT DISK FULL', 'FAULT BROKER KILLED'];
    for (const content of contents) {
      for (const answer of [
        await gateway.generate({ content }),
        await gateway.sendQr({ content }),
        await gateway.testCallback({ content }),
      ]) {
        expect([content, answer.body.message]).toEqual([content, 'FAULT_UNKNOWN']);
        const reason = answer.headers.get('x-paybox-reason') ?? '';
        expect(reason).toMatch(/^content: .*; expected one of .*FAULT PUSH TWICE/);
        expect(reason).not.toMatch(/DISK FULL|BROKER KILLED/);
        expect(reason.includes('broker-killed is')).toBe(content === 'FAULT BROKER KILLED');
      }
    }
    expect(await gateway.mock('/orders')).toEqual([]);
    expect((await gateway.generate({ content: 'FAULTY LAMP' })).status).toBe(200);
  });

  it('FLT-4 magic contents have one fault of a link stand at a time, however often they are pushed', async () => {
    const { gateway, done } = await inHaste();
    const content = magicContent('link-slow');
    for (const orderId of ['A', 'B', 'C']) {
      await done(orderId, gateway.sendQr({ content, orderId }));
    }
    expect((await faults(gateway)).standing).toMatchObject([{ fault: 'link-slow', box: BOX1.terminalCode }]);
  });

  it('FLT-4 magic contents of a callback make its fault at the first attempt only', async () => {
    const { gateway, partner, soon } = await inHaste();
    await gateway.testCallback({ content: magicContent('partner-500') });
    await soon('the delivery', async () => (await gateway.mock('/callbacks'))[0]?.status === 'delivered');
    expect(partner.calls).toHaveLength(2);
    expect(happened(gateway, 'partner-500')).toHaveLength(1);
  });
});
