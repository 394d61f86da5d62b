import { expect, it, onTestFinished } from 'vitest';
import { BoxClient } from '../../src/bench/engine/clients/box.ts';
import { realTime, type TestTime } from '../../src/bench/engine/test-time.ts';
import type { CheckResult } from '../../src/bench/judges/check.ts';
import { DIALECT_CHECKS } from '../../src/bench/judges/dialect/checks/all.ts';
import { ScriptedService } from '../../src/bench/judges/dialect/scripted-service.ts';
import { type AskPerson, type DialectSubject, waitForEnrolment } from '../../src/bench/judges/dialect/subject.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { seededRandom } from '../../src/lib/random.ts';
import { FirmwareBox, type FirmwareOptions } from '../support/firmware-box.ts';
import { dialectVerdicts } from './dialect-fixture.ts';

const IDENTITY = {
  terminalCode: 'VVB000001',
  macAddr: '02:00:5E:10:00:01',
  checkSumSalt: 'sample-check-sum-salt',
  login: { username: 'sample-boxes', password: 'sample-password' },
};
const FASTER = 20;
const never = new AbortController().signal;
/** Needs that this firmware cannot meet here. */
const NOT_THERE = /^(the box cannot be restarted|takes long)/;

/** Real time, twenty times as fast: firmware has timers of its own. */
const fastTime: TestTime = {
  ...realTime,
  clock: {
    ...systemClock,
    monotonicMs: () => systemClock.monotonicMs() * FASTER,
    sleep: (ms, signal) => systemClock.sleep(ms / FASTER, signal),
  },
  wait: (ms, signal) => systemClock.sleep(ms / FASTER, signal),
  pollDelay:
    ({ pauseMs = 100 } = {}) =>
    (mostMs) =>
      systemClock.sleep(Math.min(pauseMs, Math.max(0, mostMs)) / FASTER),
};

/** The pages of a box that has none: what its screen and its loudspeaker say. */
class FirmwarePages extends BoxClient {
  readonly #box: FirmwareBox;

  constructor(box: FirmwareBox) {
    super('http://firmware.invalid', { terminalCode: IDENTITY.terminalCode, serialNumber: '' });
    this.#box = box;
  }

  override async text() {
    return `${this.#box.screen.amount ?? ''} VND`;
  }

  override async announcements() {
    return this.#box.spoken.length;
  }
}

async function stage(
  habits: Partial<FirmwareOptions>,
  controls: (box: FirmwareBox) => Partial<DialectSubject['controls']>,
) {
  const at = { host: '127.0.0.1', port: 0 };
  const service = await ScriptedService.open(at, IDENTITY, { clock: fastTime.clock, random: seededRandom(4) });
  onTestFinished(() => service.close());
  const mqttUrl = `mqtt://127.0.0.1:${service.broker.port}`;
  const box = new FirmwareBox({ ...IDENTITY, mqttUrl, reconnectMs: 100, ...habits });
  await waitForEnrolment(service, { time: fastTime, withinMs: 300_000, signal: never });
  const close = async () => undefined;
  return { identity: IDENTITY, time: fastTime, service, controls: { ...controls(box), close } };
}

const seen = (box: FirmwareBox) => ({
  pages: new FirmwarePages(box),
  see: async () => {
    const { qrCode } = box.screen;
    return { file: Buffer.from(qrCode), picture: { width: 1, height: 1, data: new Uint8Array(4) }, qr: qrCode };
  },
});

const titles = (results: readonly CheckResult[], outcome: CheckResult['outcome']) =>
  results.filter((it) => it.outcome === outcome && !NOT_THERE.test(it.reason)).map((it) => `${it.clause} ${it.title}`);

it('DIA-10 a box that was written from the facts about firmware holds what the service asks, and differs where it is known to', async () => {
  const results = await dialectVerdicts(await stage({}, seen), DIALECT_CHECKS, false);
  expect(titles(results, 'failed')).toEqual([]);
  expect(titles(results, 'missing')).toEqual([]);
  expect(titles(results, 'skipped')).toEqual([]);
  expect(titles(results, 'differs').sort()).toEqual([
    'DIA-1 asks again while nobody answers',
    "DIA-1 listens for the answer's topic in both spellings, in a clean session",
    'DIA-4 shows no static QR of another account than the one named',
    'DIA-5 shows no QR of another amount than the one named',
    'DIA-5 shows no QR to another account than its own',
    'DIA-6 after a payment of another amount the QR comes back',
    'DIA-6 says a payment once that it is told twice',
    'DIA-7 without a connection it shows no static QR, and a dynamic one stays',
    'DIA-8 a retained message changes nothing',
  ]);
}, 240_000);

it('DIA-10 firmware that listens after its start only fails by name, and what it shows is judged before', async () => {
  const groups = ['DIA-1', 'DIA-5', 'DIA-7'];
  const checks = DIALECT_CHECKS.filter(({ clause }) => groups.includes(clause));
  const results = await dialectVerdicts(await stage({ resubscribes: false }, seen), checks, false);
  const failed = ['DIA-1 enrols and listens on its topic again after each reconnect'];
  expect(titles(results, 'failed')).toEqual(failed);
  expect(titles(results, 'missing')).toEqual([]);
  const deaf = results.filter(({ reason }) => reason.includes('restart it, or give --restart-command'));
  expect(deaf.length).toBeGreaterThan(1);
  expect(results.find(({ title }) => title === 'N12 takes the QR away')?.outcome).toBe('passed');
}, 240_000);

it('DIA-3 a box that asked in vain, and asks still, is not accused of believing what it has not asked for', async () => {
  const wanted = ['asks again while nobody answers', 'an answer that it has not asked for changes nothing'];
  const checks = DIALECT_CHECKS.filter(({ title }) => wanted.includes(title));
  const results = await dialectVerdicts(await stage({ believesEachAnswer: true }, seen), checks, false);
  expect(results.map(({ outcome }) => outcome)).toEqual(['differs', 'passed']);
}, 240_000);

it('DIA-8 a page that answers no more after a message is the fault of the box', async () => {
  const checks = DIALECT_CHECKS.filter(({ title }) => title.startsWith('survives messages that are longer'));
  const subject = await stage({}, (box) => ({
    see: async () => (box.dropped.length === 0 ? seen(box).see() : Promise.reject(new Error('ECONNRESET'))),
  }));
  const [result] = await dialectVerdicts(subject, checks, false);
  expect(result?.outcome).toBe('failed');
  expect(result?.reason).toContain('since then the screen cannot be seen: ECONNRESET');
}, 240_000);

it('the judge asks a person where no program sees the screen, and takes a no as a verdict', async () => {
  const asked: string[] = [];
  const answers =
    (box: FirmwareBox): AskPerson =>
    async (question) => {
      asked.push(question);
      if (question.startsWith('Did the box say')) return undefined;
      const isOrder = question.includes('an order of');
      return isOrder ? box.screen.kind === 'dynamic' : !question.includes('its account');
    };
  const subject = await stage({}, (box) => ({ ask: answers(box) }));
  const checks = DIALECT_CHECKS.filter(({ clause }) => ['DIA-4', 'DIA-5', 'DIA-6'].includes(clause));
  const results = await dialectVerdicts(subject, checks, false);
  const reasonOf = (title: string) => results.find((it) => it.title === title)?.reason;
  expect(reasonOf('shows the static QR of its account (N16)')).toBe(
    'somebody at the box says no to: Is the QR of its account, for any amount on the screen?',
  );
  expect(titles(results, 'passed')).toContain('DIA-5 shows the QR of an order (N17)');
  expect(reasonOf('says a payment aloud once, and another one too')).toContain('nobody can tell: Did the box say');
  expect(asked.some((it) => /^Is the QR of an order of \d\d,\d{3} đồng on the screen\?$/.test(it))).toBe(true);
}, 240_000);
