import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/log.ts';

function logged(format: 'json' | 'text', write: (log: ReturnType<typeof createLogger>) => void): string {
  const out = new PassThrough();
  write(createLogger(out, { ...systemClock, wallMs: () => 0 }, format));
  return String(out.read());
}

describe('the log', () => {
  it('writes lines for machines and for people', () => {
    const write = (log: ReturnType<typeof createLogger>) =>
      log.with({ program: 'agent' }).warn('link-down', { reason: 'no route', tries: 3, absent: undefined });
    expect(JSON.parse(logged('json', write))).toEqual({
      time: '1970-01-01T00:00:00.000Z',
      level: 'warn',
      event: 'link-down',
      program: 'agent',
      reason: 'no route',
      tries: 3,
    });
    expect(logged('text', write)).toBe(
      '1970-01-01T00:00:00.000Z warn  link-down program=agent reason="no route" tries=3\n',
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
