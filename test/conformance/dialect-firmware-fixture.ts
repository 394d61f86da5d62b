import { onTestFinished } from 'vitest';
import { BoxClient } from '../../src/bench/engine/clients/box.ts';
import { realTime, type TestTime } from '../../src/bench/engine/test-time.ts';
import type { CheckResult } from '../../src/bench/judges/check.ts';
import { ScriptedService } from '../../src/bench/judges/dialect/scripted-service.ts';
import { type DialectSubject, waitForEnrolment } from '../../src/bench/judges/dialect/subject.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { seededRandom } from '../../src/lib/random.ts';
import { FirmwareBox, type FirmwareOptions } from '../support/firmware-box.ts';

export const IDENTITY = {
  terminalCode: 'VVB000001',
  macAddr: '02:00:5E:10:00:01',
  checkSumSalt: 'sample-check-sum-salt',
  login: { username: 'sample-boxes', password: 'sample-password' },
};
export const FASTER = 20;
export const never = new AbortController().signal;
/** Needs that this firmware cannot meet here. */
export const NOT_THERE = /^(the box cannot be restarted|takes long)/;

/** Real time, twenty times as fast: firmware has timers of its own. */
export const fastTime: TestTime = {
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
export class FirmwarePages extends BoxClient {
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

export async function stage(
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

export const seen = (box: FirmwareBox) => ({
  pages: new FirmwarePages(box),
  see: async () => {
    const { qrCode } = box.screen;
    return { file: Buffer.from(qrCode), picture: { width: 1, height: 1, data: new Uint8Array(4) }, qr: qrCode };
  },
});

export const titles = (results: readonly CheckResult[], outcome: CheckResult['outcome']) =>
  results.filter((it) => it.outcome === outcome && !NOT_THERE.test(it.reason)).map((it) => `${it.clause} ${it.title}`);
