import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Transcript } from '../../src/bench/engine/reports/transcript.ts';
import { TrafficRecorder } from '../../src/bench/engine/run/traffic-recorder.ts';
import type { Target } from '../../src/bench/engine/target.ts';
import { realTime } from '../../src/bench/engine/test-time.ts';
import { lyingProxy, mutant, runSteps } from './setup.ts';

const STEPS = `
  - push: { amount: 50000, content: A, order: A }
  - pay: { amount: 50000, content: A }
  - expect: { screen: idle, within: 20s }
`;

const titles = ({ entries }: Awaited<ReturnType<typeof runSteps>>, ...kinds: string[]) =>
  entries.filter(({ kind }) => kinds.includes(kind)).map(({ title }) => title);

describe('the evidence of a scenario', () => {
  it('the evidence of a scenario holds every message, call and callback of its own time, in order', async () => {
    const result = await runSteps(STEPS);
    expect(result.outcome).toBe('passed');
    expect(titles(result, 'message')).toEqual([
      'gateway → VVB000001  show A 50.000 ₫',
      'gateway ← VVB000001  shown',
      'gateway → VVB000001  payment A 50.000 ₫',
      'gateway ← VVB000001  paid A 50.000 ₫',
      'gateway → VVB000001  ack',
    ]);
    expect(titles(result, 'service').filter((it) => !it.includes('token_generate'))).toEqual([
      'POST /api/qr/generate-customer: 200',
      'POST /api/tid/send-qr: 200',
      'POST /bank/api/test/transaction-callback: 200',
    ]);
    expect(titles(result, 'callback')).toContain('attempt: delivered, 200');
    const times = result.entries.map(({ atMs }) => atMs);
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(times.every((it) => it >= 0 && it < 60_000)).toBe(true);
    expect(JSON.stringify(result.entries)).not.toMatch(/bench-secret|"access_token":"(?!\*)/);
  });

  it('the evidence of a scenario holds what a gateway sent before it was turned off', async () => {
    const result = await runSteps(`${STEPS}  - fault: { gateway: "off" }\n  - fault: { gateway: "on" }\n`);
    expect(titles(result, 'message')).toContain('gateway → VVB000001  show A 50.000 ₫');
  });

  it('the evidence of a long scenario holds its beginning and its end', async () => {
    let newest = 3;
    const server = createServer((request, response) => {
      const since = Number(new URL(request.url ?? '', 'http://x').searchParams.get('since'));
      const count = Math.min(1_000, newest - since);
      const entries = Array.from({ length: count }, (_, index) => {
        const n = since + index + 1;
        return { n, at: '', upMs: n, kind: 'box', box: 'VVB000001', online: true, why: String(n) };
      });
      response.end(JSON.stringify({ run: 'r', entries, next: since + count, lost: 0, upMs: newest }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const target = { time: realTime, gateway: { access: { origin } } } as unknown as Target;
    const evidence = new Transcript(realTime.clock);
    const messages = new TrafficRecorder(target, evidence);
    await messages.begin();
    newest = 9_003;
    await messages.end();
    const numbers = evidence.entries.map(({ title }) => Number(title.split(' ').at(-1)));
    expect(numbers).toEqual([
      ...Array.from({ length: 500 }, (_, index) => index + 4),
      ...Array.from({ length: 1_500 }, (_, index) => index + 7_504),
    ]);
    expect(evidence.omitted).toBe(7_000);
  });

  it('the evidence of a scenario says when a gateway reports no messages', async () => {
    const kind = mutant(async (target) => {
      const { access } = target.gateway;
      const origin = await lyingProxy(access.origin, (path, body) =>
        path.startsWith('/_mock/wire') ? Buffer.from('{}') : body,
      );
      const gateway = Object.create(target.gateway, { access: { value: { ...access, origin } } });
      return { ...target, gateway };
    });
    const result = await runSteps('  - expect: { screen: idle }\n', { kind });
    expect(result.outcome).toBe('passed');
    expect(titles(result, 'status')).toContain('the gateway does not list messages');
  });
});
