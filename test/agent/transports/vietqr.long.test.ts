import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Agent, startAgent } from '../../../src/device/agent/agent.ts';
import { parseAgentConfig } from '../../../src/device/agent/config.ts';
import { setupOf } from '../../../src/device/agent/setup.ts';
import { LinkMemory } from '../../../src/device/agent/transports/link-memory.ts';
import { VietqrMemory } from '../../../src/device/agent/transports/vietqr-memory.ts';
import { encodePng } from '../../../src/device/display/pixels/png.ts';
import { qrTextOf } from '../../../src/device/scene.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { systemRandom } from '../../../src/lib/random.ts';
import { VirtualClock } from '../../../src/lib/virtual-clock.ts';
import { decodeNotice } from '../../../src/protocol/dialect.ts';
import { encodeVietQr } from '../../../src/protocol/vietqr.ts';
import { keptLog, quietLog } from '../../support/kept-log.ts';
import { eventually, temporaryFolder } from '../../support/net.ts';
import { MAC, publicService, SERVICE } from '../../support/public-service.ts';
import { decodeQrTwice } from '../../support/qr-decoders.ts';

const ACCOUNT = { bankAccount: '0123456789', bankCode: 'MB', userBankName: 'NGUYEN VAN A' };
const BIN = '970422';

function qr(amount: number | undefined, purpose?: string, account = ACCOUNT.bankAccount, bin = BIN): string {
  const initiation = amount === undefined ? ('static' as const) : ('dynamic' as const);
  return encodeVietQr({ bin, account, service: 'account', initiation, amount, ...(purpose && { purpose }) });
}

const STATIC_QR = qr(undefined);
/** As the service writes it: some fields empty, no boxCode. */
const LINKED = {
  notificationType: 'N16',
  bankAccount: ACCOUNT.bankAccount,
  bankShortName: 'MBBank',
  userBankName: ACCOUNT.userBankName,
  terminalCode: 'SHOP1',
  terminalName: 'Quan ca phe',
  qrCode: STATIC_QR,
  bankCode: 'MB',
  imgBank: '',
  homePage: '',
};
const show = (amount: string, qrCode: string) => ({ notificationType: 'N17', amount, qrCode });
const paid = (amount: string, message: string) => ({ notificationType: 'N05', amount, message });
const CANCELLED = { notificationType: 'N12', transactionReceiveId: 'of-another-world' };

interface Start {
  url: string;
  dataDir?: string;
  link?: object;
}

/** A box with a picture for a screen. */
async function box({ url, dataDir, link = {} }: Start) {
  const folder = dataDir ?? (await temporaryFolder());
  const { log, lines } = keptLog();
  const config = parseAgentConfig(
    {
      box: { terminalCode: 'VVB000001', serialNumber: 'VVB900001' },
      link: { transport: 'vietqr', url, macAddr: MAC, ...SERVICE, ...link },
      displays: [{ driver: 'png', path: `${folder}/screen.png` }],
      http: { port: 0 },
      dataDir: folder,
    },
    'box.yaml',
  );
  const deps = { clock: systemClock, random: systemRandom, log, terminal: undefined, terminalInput: undefined };
  const agent = await startAgent(setupOf(config), deps);
  onTestFinished(() => agent.close());
  const events = () => lines;
  return { agent, folder, events, scene: () => agent.box.scene(), count: (event: string) => counted(events(), event) };
}

function counted(events: { event: string }[], event: string): number {
  return events.filter((it) => it.event === event).length;
}

const counter = (agent: Agent, name: string) =>
  Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(agent.box.metrics())?.[1] ?? 'NaN');
const announced = (agent: Agent) => counter(agent, 'paybox_box_announcements_total');
const repeated = (agent: Agent) => counter(agent, 'paybox_box_payments_repeated_total');

/** The QR that two decoders see on the screen, once the screen is of this kind. */
async function qrOn(agent: Agent, kind: string): Promise<string> {
  await eventually(`a ${kind} screen`, () => {
    const { display } = agent.box.status();
    return agent.box.scene().kind === kind && display.ok && display.qr !== null;
  });
  const text = await eventually('the QR on it', () => {
    const frame = agent.box.frame();
    if (frame?.kind !== 'pixels') return undefined;
    try {
      const [one, other] = decodeQrTwice(encodePng(frame));
      return one === other && one === qrTextOf(agent.box.scene()) ? one : undefined;
    } catch {
      // A picture without a QR: that of the scene is not drawn yet.
      return undefined;
    }
  });
  return text;
}

/** A box that is linked already. */
async function linkedBox(start: Omit<Start, 'url'> = {}) {
  const service = await publicService({ afterwards: [LINKED] });
  const made = await box({ url: service.url, ...start });
  await eventually('linked', () => made.scene().kind === 'idle');
  return { service, ...made };
}

describe('a box at the public service', () => {
  it('DIA-1 DIA-2 DIA-4 a box enrols by its MAC address and shows the certificate, then the static QR of its account', async () => {
    const service = await publicService();
    const { agent } = await box({ url: service.url });
    expect(await qrOn(agent, 'certificate')).toBe('sample-certificate-of-VVB000001');
    expect(agent.box.status()).toMatchObject({ state: 'unlinked', online: true });
    await service.say(LINKED);
    expect(await qrOn(agent, 'idle')).toBe(STATIC_QR);
    expect(agent.box.scene()).toMatchObject({ kind: 'idle', holder: ACCOUNT });
    expect(service.connects).toMatchObject([{ clean: true, keepalive: 15 }]);
    expect(JSON.parse(service.enrolments[0] ?? '')).toMatchObject({ macAddr: MAC });
    expect(service.faults).toEqual([]);
  });

  it.each([['sent'], ['bare']] as const)(
    'DIA-1 a box accepts an answer to its enrolment under the address as %s',
    async (spelling) => {
      const service = await publicService({ spellings: [spelling] });
      const { agent } = await box({ url: service.url, link: { macAddr: '02.00.5e.10.00.01' } });
      await qrOn(agent, 'certificate');
    },
  );

  it('DIA-2 a box misses no message right after the answer, and its certificate does not come back', async () => {
    const { agent, service, events } = await linkedBox();
    expect(await qrOn(agent, 'idle')).toBe(STATIC_QR);
    expect(events().filter(({ level }) => level === 'error')).toEqual([]);
    expect(service.faults).toEqual([]);
  });

  it('DIA-2 a box says that the service does not answer, and what to check', async () => {
    const service = await publicService();
    service.known.clear();
    const { agent } = await box({ url: service.url, link: { connectTimeoutMs: 500 } });
    await eventually('the reason', () => agent.box.status().link.reason?.includes('check link.macAddr'));
    expect(agent.box.scene().kind).toBe('connecting');
    service.known.set(MAC.replaceAll(':', ''), 'VVB000001');
    await qrOn(agent, 'certificate');
  });

  it('DIA-5 shows a dynamic QR with what it says, until it is paid as the notice says', async () => {
    const { agent, service } = await linkedBox();
    const dynamic = qr(50_000, 'VQR1234567890 DH001');
    await service.say(show('50,000', dynamic));
    expect(await qrOn(agent, 'payment')).toBe(dynamic);
    expect(agent.box.scene()).toMatchObject({ amount: 50_000, content: 'VQR1234567890 DH001', holder: ACCOUNT });
    const { order } = agent.box.status();
    expect(order).toMatchObject({ orderId: '' });
    await service.say(show('50,000', dynamic));
    await service.say({ notificationType: 'N00' });
    expect(agent.box.status().order).toEqual(order);
    await service.say(paid('50,000', 'Da nhan 50000 dong'));
    await eventually('paid', () => agent.box.scene().kind === 'paid');
    expect(agent.box.scene()).toMatchObject({ amount: 50_000, content: 'Da nhan 50000 dong' });
    expect(agent.box.status().lastPayment).toMatchObject({ orderId: '', amount: 50_000 });
    agent.box.press('dismiss');
    await eventually('idle', () => agent.box.scene().kind === 'idle');
    expect(announced(agent)).toBe(1);
  });

  it('DIA-5 ends a QR after the lifetime that the box is configured with, and a withdrawal takes the one that shows', async () => {
    const { agent, service } = await linkedBox({ link: { qrLifetimeSeconds: 2 } });
    await service.say(CANCELLED);
    await service.say(show('50,000', qr(50_000)));
    await eventually('the QR', () => agent.box.scene().kind === 'payment');
    const { expiresAt = '' } = agent.box.status().order ?? {};
    expect(Date.parse(expiresAt) - Date.now()).toBeLessThanOrEqual(2_000);
    await service.say(CANCELLED);
    await eventually('cancelled', () => agent.box.scene().kind === 'cancelled');
    await service.say(show('60.000', qr(60_000)));
    await eventually('the next QR', () => agent.box.scene().kind === 'payment');
    await eventually('expired', () => agent.box.scene().kind === 'expired');
  });

  it.each([
    ['another account', show('50,000', qr(50_000, undefined, '9999999999')), 'QR_MISMATCH'],
    ['another bank', show('50,000', qr(50_000, undefined, ACCOUNT.bankAccount, '970436')), 'QR_MISMATCH'],
    ['another amount', show('60,000', qr(50_000)), 'QR_MISMATCH'],
    ['no amount', show('50,000', STATIC_QR), 'QR_MISMATCH'],
    ['no payload', show('50,000', 'https://example.test/pay'), 'QR_INVALID'],
  ])('DIA-5 AGT-1 never shows a dynamic QR of %s', async (_what, notice, code) => {
    const { agent, service, events } = await linkedBox();
    await service.say(notice);
    await eventually('refused', () => events().some((it) => it.event === 'push-rejected' && it.code === code));
    expect(agent.box.scene().kind).toBe('idle');
  });

  it('DIA-4 shows no static QR of another account, and still knows the account', async () => {
    const { agent, service, count } = await linkedBox();
    await service.say({ ...LINKED, qrCode: qr(undefined, undefined, '9999999999') });
    await eventually('refused', () => count('static-qr-refused') === 1);
    await eventually('gone', () => qrTextOf(agent.box.scene()) === undefined);
    expect(agent.box.scene()).toMatchObject({ kind: 'idle', holder: ACCOUNT });
  });

  it('DIA-5 refuses a dynamic QR before it knows an account', async () => {
    const service = await publicService();
    const { agent, events } = await box({ url: service.url });
    await qrOn(agent, 'certificate');
    await service.say(show('50,000', qr(50_000)));
    await eventually('refused', () => events().some((it) => it.event === 'push-rejected' && it.code === 'E36'));
    expect(agent.box.scene().kind).toBe('certificate');
  });

  it('DIA-6 a box announces equal notices once, different ones each, and counts the repetitions', async () => {
    const { agent, service } = await linkedBox({ link: { repeatWindowSeconds: 3_600 } });
    await service.say(paid('50,000', 'Nhan 50000 tu A'));
    await service.say(paid('50,000', 'Nhan 50000 tu A'));
    await service.say(paid('50,000', 'Nhan 50000 tu B'));
    await service.say(paid('60,000', 'Nhan 50000 tu A'));
    await service.say(paid('50,000', 'Nhan 50000 tu A'));
    await eventually('all are there', () => announced(agent) + repeated(agent) === 5);
    expect([announced(agent), repeated(agent)]).toEqual([3, 2]);
  });

  it('DIA-6 a box does not announce a repetition again after a restart', async () => {
    const { agent, service, folder } = await linkedBox({ link: { repeatWindowSeconds: 3_600 } });
    await service.say(paid('50,000', 'Nhan 50000 tu A'));
    await eventually('said', () => announced(agent) === 1);
    await agent.close();
    const { agent: again } = await box({ url: service.url, dataDir: folder, link: { repeatWindowSeconds: 3_600 } });
    await eventually('online', () => again.box.status().online);
    await service.say(paid('50,000', 'Nhan 50000 tu A'));
    await eventually('seen', () => repeated(again) === 1);
    expect(announced(again)).toBe(0);
    expect(again.box.status().lastPayment).toMatchObject({ amount: 50_000 });
  });

  it('DIA-3 a box has boxId, account and static QR after a restart, before the service sends anything', async () => {
    const { agent, service, folder } = await linkedBox();
    await agent.close();
    service.known.clear();
    const { agent: again } = await box({ url: service.url, dataDir: folder });
    expect(await qrOn(again, 'idle')).toBe(STATIC_QR);
    await service.say(show('50,000', qr(50_000)));
    await eventually('the QR', () => again.box.scene().kind === 'payment');
  });

  it('DIA-3 forgets the account when the service gives it another boxId', async () => {
    const { agent, service, folder } = await linkedBox();
    await agent.close();
    await service.stop();
    const other = await publicService({ code: 'VVB000002', port: service.port });
    const { agent: again, count } = await box({ url: other.url, dataDir: folder });
    expect(await qrOn(again, 'certificate')).toBe('sample-certificate-of-VVB000002');
    expect(count('box-code-mismatched')).toBe(1);
    await other.say(LINKED);
    await qrOn(again, 'idle');
  });

  const OTHER = JSON.stringify({ qrCertificate: 'x', boxId: 'of-another-box' });
  const ANSWERS = `/vqr/handle-box/response/${MAC}`;

  it('DIA-3 DIA-9 a box ignores an answer that it has not asked for: link and QR stay', async () => {
    const { agent, service, events, count } = await linkedBox();
    const dynamic = qr(50_000);
    await service.say(show('50,000', dynamic));
    await eventually('the QR', () => agent.box.scene().kind === 'payment');
    await service.publish(ANSWERS, OTHER);
    await eventually('refused', () => count('message-refused') === 1);
    expect(events().some((it) => it.event === 'box-enrolled' && it.service === null)).toBe(false);
    await service.say(paid('50,000', 'Nhan 50000'));
    await eventually('paid', () => announced(agent) === 1);
    expect(agent.box.scene()).toMatchObject({ kind: 'paid', holder: ACCOUNT });
    expect([count('link-lost'), service.enrolments.length]).toEqual([0, 1]);
  });

  it('DIA-3 a box keeps its boxId while the service gives that one too, whoever answers first', async () => {
    const { agent, service, folder } = await linkedBox();
    await agent.close();
    service.beforehand.push([ANSWERS, OTHER]);
    const { agent: again, count } = await box({ url: service.url, dataDir: folder });
    await eventually('it has asked', () => service.enrolments.length === 2);
    await service.say(paid('50,000', 'Nhan 50000'));
    await eventually('paid', () => announced(again) === 1);
    expect(again.box.scene()).toMatchObject({ kind: 'paid', holder: ACCOUNT });
    expect(count('box-enrolled')).toBe(0);
  });

  it('DIA-8 a box ignores an answer that the broker has retained', async () => {
    const service = await publicService({ afterwards: [LINKED] });
    await service.publish(ANSWERS, OTHER, true);
    const { agent, events } = await box({ url: service.url });
    await eventually('linked', () => agent.box.scene().kind === 'idle');
    expect(events().some((it) => it.reason === 'enrolment: retained by the broker')).toBe(true);
    expect(service.connects.length).toBe(1);
  });

  it.each([
    ['of any account', qr(50_000, undefined, '9999999999')],
    ['of its own', STATIC_QR],
    ['that is broken', ` 000201${'0'.repeat(20)}`],
    ['in an address', `https://example.test/?qr=${STATIC_QR}`],
  ])('DIA-2 shows no payment QR %s as the certificate, and asks on', async (_what, qrCertificate) => {
    const service = await publicService({ qrCertificate });
    const { agent, count } = await box({ url: service.url });
    await eventually('it has asked again', () => service.enrolments.length >= 3);
    expect(count('certificate-refused')).toBe(1);
    expect(qrTextOf(agent.box.scene())).toBeUndefined();
  });

  it('DIA-2 shows no payment QR that it remembers as a certificate', async () => {
    const service = await publicService();
    service.known.clear();
    const folder = await temporaryFolder();
    const enrolled = { boxId: 'abc', qrCertificate: STATIC_QR };
    const owner = `${service.url} ${MAC.replaceAll(':', '')}`;
    await writeFile(join(folder, 'link.json'), JSON.stringify({ v: 1, owner, enrolled }));
    const { agent, count } = await box({ url: service.url, dataDir: folder });
    await eventually('online', () => agent.box.status().online);
    expect(agent.box.scene().kind).toBe('unlinked');
    expect(count('certificate-refused')).toBe(1);
  });

  it('DIA-7 shows that it is offline, without a static QR, and listens again after each loss', async () => {
    const { agent, service } = await linkedBox();
    for (const round of [1, 2, 3]) {
      const seen: unknown[] = [];
      const stop = agent.box.onChange(() => seen.push(agent.box.scene()));
      service.cut();
      await eventually('offline', () => seen.some((it) => Object(it).online === false));
      stop();
      expect(seen).toContainEqual({
        kind: 'idle',
        holder: ACCOUNT,
        terminalCode: 'VVB000001',
        plainLink: false,
        online: false,
      });
      await eventually('online', () => agent.box.status().online);
      await service.say(paid('50,000', `Nhan 50000 lan ${round}`));
      await eventually('paid', () => announced(agent) === round);
      agent.box.press('dismiss');
      await eventually('idle', () => agent.box.scene().kind === 'idle');
    }
    expect(service.enrolments.length).toBe(4);
    expect(new Set(service.connects.map(({ clientId }) => clientId)).size).toBe(4);
  });

  it('DIA-7 keeps the QR of an order while it is offline, under the badge, for its lifetime', async () => {
    const { agent, service } = await linkedBox({ link: { qrLifetimeSeconds: 2 } });
    await service.say(show('50,000', qr(50_000)));
    await eventually('the QR', () => agent.box.scene().kind === 'payment');
    await service.stop();
    await eventually('offline', () => !agent.box.status().online);
    expect(agent.box.scene()).toMatchObject({ kind: 'payment', online: false });
    await eventually('expired', () => agent.box.scene().kind === 'expired');
  });

  it('DIA-8 a box ignores retained and illegal messages', async () => {
    const { agent, service, events } = await linkedBox();
    for (const payload of ['', '{}', '[]', 'null', '{"notificationType":"N22"}', JSON.stringify(paid('many', 'x'))]) {
      await service.publish(service.boxTopic, payload);
    }
    await service.publish(service.boxTopic, JSON.stringify(show('50,000', qr(50_000))), true);
    await agent.close();
    const count = () => events().filter((it) => it.event === 'message-refused').length;
    expect(count()).toBeGreaterThanOrEqual(6);
    const { agent: again, events: later } = await box({ url: service.url });
    await eventually('refused', () => later().some((it) => /retained/.test(String(it.reason))));
    await eventually('online', () => again.box.status().online);
    expect(['idle', 'certificate']).toContain(again.box.scene().kind);
  });
});

describe('what a box remembers of the service', () => {
  const bootOf = (id: string, isRight = false) => ({ id, offsetMs: 0, isTimeRight: async () => isRight });
  const N05 = { notificationType: 'N05', amount: 50_000, message: 'Nhan 50000' } as const;

  async function memory(folder: string, clock: VirtualClock, owner = 'mqtt://a 1', boot = bootOf('a')) {
    const log = quietLog(clock);
    const box = { memory: new LinkMemory(folder, log), boot };
    return VietqrMemory.open(owner, { clock, log, random: systemRandom, box, repeatWindowMs: 10_000 });
  }

  it('DIA-6 the memory of a box counts an equal notice within the window as the same payment, also after a restart', async () => {
    const folder = await temporaryFolder();
    const clock = new VirtualClock();
    const first = await (await memory(folder, clock)).payment(N05);
    await clock.advance(9_999);
    const again = await (await memory(folder, clock)).payment(N05);
    expect(again).toMatchObject({ transactionId: first.transactionId, paidAtMs: first.paidAtMs, repeated: true });
    await clock.advance(1);
    const later = await (await memory(folder, clock)).payment(N05);
    expect(later.repeated).toBe(false);
    expect(later.transactionId).not.toBe(first.transactionId);
  });

  it('DIA-6 the memory of a box counts a payment after a power cut as new, although the clock stood still', async () => {
    const folder = await temporaryFolder();
    const clock = new VirtualClock();
    const before = await (await memory(folder, clock)).payment(N05);
    const right = await memory(folder, clock, 'mqtt://a 1', bootOf('b', true));
    expect(await right.payment(N05)).toEqual({ ...before, repeated: true });
    const stoodStill = await memory(folder, clock, 'mqtt://a 1', bootOf('c'));
    const fresh = await stoodStill.payment(N05);
    expect([fresh.repeated, fresh.transactionId === before.transactionId]).toEqual([false, false]);
    expect(await stoodStill.payment(N05)).toEqual({ ...fresh, repeated: true });
  });

  it.each([
    ['25000', 'Nhan 25000 VND'],
    ['25,000', 'Nhan 25,000 VND'],
    ['25000.0', 'Nhan 25000.0 VND'],
    [25_000.0, 'Nhan 25.000 VND'],
  ])(
    'DIA-6 takes a notice of %s in the words "%s" for the same, and other amounts for others',
    async (amount, text) => {
      const notice = (it: string | number, message: string) => {
        const decoded = decodeNotice(JSON.stringify({ notificationType: 'N05', amount: it, message }));
        if (!decoded.ok || decoded.value.notificationType !== 'N05') throw new Error('not taken');
        return decoded.value;
      };
      const known = await memory(await temporaryFolder(), new VirtualClock());
      const first = await known.payment(notice('25,000', 'Nhan 25000 VND'));
      expect(await known.payment(notice(amount, text))).toEqual({ ...first, repeated: true });
      for (const other of ['Nhan 25000 VND lan 2', 'Nhan 25001 VND', 'Nhan 250000 VND']) {
        expect(await known.payment(notice(amount, other))).toMatchObject({ repeated: false });
      }
      expect(await known.payment(notice('25001', text))).toMatchObject({ repeated: false });
    },
  );

  it('DIA-6 the memory of a box finds the first of many payments within the window, also after a restart', async () => {
    const folder = await temporaryFolder();
    const clock = new VirtualClock();
    const before = await memory(folder, clock);
    const first = await before.payment(N05);
    for (let n = 1; n <= 500; n += 1) await before.payment({ ...N05, message: `Nhan ${n}` });
    expect(await (await memory(folder, clock)).payment(N05)).toMatchObject({ ...first, repeated: true });
  });

  it('DIA-3 the memory of a box ignores what belongs to another service or address, and a damaged file', async () => {
    const folder = await temporaryFolder();
    const clock = new VirtualClock();
    await (await memory(folder, clock)).enrol({ boxId: 'abc', qrCertificate: 'x' });
    expect((await memory(folder, clock)).enrolled).toEqual({ boxId: 'abc', qrCertificate: 'x' });
    expect((await memory(folder, clock, 'mqtt://b 1')).enrolled).toBeUndefined();
  });

  it('DIA-6 the memory of a box gives a repetition the same id while the disk fails', async () => {
    const clock = new VirtualClock();
    const it = await memory('/proc/no-folder', clock);
    const first = await it.payment(N05);
    expect(await it.payment(N05)).toEqual({ ...first, repeated: true });
  });
});
