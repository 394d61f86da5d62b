import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger, withoutRepeats } from '../../src/lib/log.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';

function logged(format: 'json' | 'text', write: (log: ReturnType<typeof createLogger>) => void): string {
  const out = new PassThrough();
  write(createLogger(out, { ...systemClock, wallMs: () => 0 }, format));
  return String(out.read());
}

describe('the log', () => {
  it('writes lines for machines and for people', () => {
    const write = (log: ReturnType<typeof createLogger>) =>
      log.with({ program: 'agent' }).warn('link-lost', { reason: 'no route', tries: 3, absent: undefined });
    expect(JSON.parse(logged('json', write))).toEqual({
      time: '1970-01-01T00:00:00.000Z',
      level: 'warn',
      event: 'link-lost',
      program: 'agent',
      reason: 'no route',
      tries: 3,
    });
    expect(logged('text', write)).toBe(
      '1970-01-01T00:00:00.000Z warn  link-lost program=agent reason="no route" tries=3\n',
    );
  });

  it.each(['json', 'text'] as const)('ERR-5 never writes a secret, nor lets a payer forge a line (%s)', (format) => {
    const text = logged(format, (log) =>
      log.info('x', {
        password: 'pw1',
        boxSecret: 'pw2',
        accessToken: 'pw3',
        content: 'a\nb\u001b[31m\u009b31m\u202e\u{e0041}',
        long: 'y'.repeat(9_999),
      }),
    );
    expect(text).not.toMatch(/pw[123]/);
    expect(text.trimEnd()).toMatch(/^[ -~…]*$/);
    expect(text).toContain('\\u009b31m\\u202e\\udb40\\udc41');
    if (format === 'json') expect(JSON.parse(text).content).toBe('a\nb\u001b[31m\u009b31m\u202e\u{e0041}');
    expect(text.length).toBeLessThan(1_000);
  });
});

const MINUTE_MS = 60_000;

function counting() {
  const out = new PassThrough({ highWaterMark: 10_000_000 });
  const clock = new VirtualClock();
  const ending = new AbortController();
  const log = withoutRepeats(createLogger(out, clock, 'json'), clock, ending.signal);
  const lines = () =>
    String(out.read() ?? '')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { clock, ending, log, lines };
}

it('ERR-5 writes the first refusals of a kind at once, and counts the others of a minute in one line', async () => {
  const { clock, log, lines } = counting();
  const own = log.with({ program: 'gateway' });
  for (let n = 1; n <= 1_000; n += 1) own.warn('request-refused', { code: 'E74', path: `/${n}` });
  expect(lines().map(({ path }) => path)).toEqual(['/1', '/2', '/3']);
  await clock.advance(MINUTE_MS);
  expect(lines()).toMatchObject([
    { level: 'warn', event: 'request-refused', program: 'gateway', code: 'E74', path: '/1000', repeated: 997 },
  ]);
  own.warn('request-refused', { code: 'E74', path: '/again' });
  expect(lines()).toMatchObject([{ path: '/again' }]);
});

it('ERR-5 tells refusals apart by event, code, box and address', () => {
  const { log, lines } = counting();
  const kinds = [
    ['message-refused', { code: 'A', box: 'VVB000001' }],
    ['message-refused', { code: 'B', box: 'VVB000001' }],
    ['message-refused', { code: 'A', box: 'VVB000002' }],
    ['box-refused', { code: 'A', box: 'VVB000001' }],
    ['request-refused', { address: '10.0.0.1' }],
    ['request-refused', { address: '10.0.0.2' }],
  ] as const;
  for (let n = 0; n < 10; n += 1) for (const [event, fields] of kinds) log.warn(event, fields);
  expect(lines()).toHaveLength(3 * kinds.length);
});

it('ERR-5 tells what is said of one box not apart by address', async () => {
  const { clock, log, lines } = counting();
  for (let n = 0; n < 64; n += 1) log.info('enrolment-requested', { box: 'VVB000001', address: `127.0.0.${n & 15}` });
  expect(lines()).toHaveLength(3);
  await clock.advance(MINUTE_MS);
  expect(lines()).toMatchObject([{ event: 'enrolment-requested', box: 'VVB000001', repeated: 61 }]);
});

it('ERR-5 stays short, however many kinds there are', async () => {
  const { clock, log, lines } = counting();
  for (let n = 0; n < 10_000; n += 1)
    log.warn('request-refused', { code: 'E74', address: `10.0.${n >> 8}.${n & 255}` });
  expect(lines().length).toBeLessThan(100);
  await clock.advance(MINUTE_MS);
  expect(lines()).toMatchObject([{ repeated: expect.any(Number) }]);
});

it('ERR-5 says at the end of the program what it has counted until then, once', async () => {
  const { clock, ending, log, lines } = counting();
  for (let n = 0; n < 10; n += 1) log.warn('message-dropped', { box: 'VVB000001' });
  lines();
  ending.abort();
  expect(lines()).toMatchObject([{ event: 'message-dropped', repeated: 7 }]);
  await clock.advance(2 * MINUTE_MS);
  expect(lines()).toEqual([]);
});

it('ERR-5 writes the first errors of a reason at once, and counts the others of a minute in one line', async () => {
  const { clock, log, lines } = counting();
  for (let n = 1; n <= 100; n += 1) {
    log.error('request-failed', { code: 'E05', path: `/${n}`, reason: 'no room' });
    if (n === 50) log.error('request-failed', { code: 'E05', path: '/other', reason: 'no store' });
  }
  const at = (path: string, reason = 'no room') => ({ level: 'error', event: 'request-failed', path, reason });
  expect(lines()).toMatchObject([at('/1'), at('/2'), at('/3'), at('/other', 'no store')]);
  await clock.advance(MINUTE_MS);
  expect(lines()).toMatchObject([{ ...at('/100'), repeated: 97 }]);
});

it('leaves every other line alone', () => {
  const { log, lines } = counting();
  for (let n = 0; n < 100; n += 1) {
    log.info('payment', { n });
    log.warn('callback', { n });
    log.error('payment-missing', { n });
  }
  expect(lines()).toHaveLength(300);
});
