import { describe, expect, it } from 'vitest';
import { qrFor, testGateway } from '../gateway/harness.ts';
import { PUSHES_PER_SECOND, problemsOf, run, summaryOf } from '../soak/flood.ts';
import { keptBytes } from '../support/memory.ts';
import { eventually } from '../support/net.ts';
import { isReady, startBox } from './box.ts';

const SEED = 1;
/** `npm run soak -- --only flood` takes 30. */
const SECONDS = 5;
/** Requests of one partner that are under way at the same time. */
const CONCURRENCY = 64;
/** What a gateway may still hold of a flood, for its caches. */
const KEPT_BYTES_MAX = 40_000_000;
const isLinux = process.platform === 'linux';

describe.skipIf(!isLinux)(`a box under a flood${isLinux ? '' : ' (its memory is read from /proc: Linux only)'}`, () => {
  it('SND-8 AGT-5 MSG-7 a box under a flood shows the newest push, announces each payment once, and keeps its memory', {
    timeout: 240_000,
  }, async () => {
    const counts = await run(SEED, { seconds: SECONDS, pushesPerSecond: PUSHES_PER_SECOND });
    process.stdout.write(`flood of ${SECONDS} s: ${summaryOf(counts)}\n`);
    expect(problemsOf(counts)).toEqual([]);
    expect(counts.payments).toBe(SECONDS);
    expect(counts.shown).toBeGreaterThan(0);
    expect(counts.refused).toEqual({ REPLACED: expect.any(Number) });
  });
});

describe('a gateway under a flood', () => {
  it('SND-3 SND-4 SND-8 a gateway under a flood answers every push to one box by name, keeps its memory, and pushes on afterwards', {
    timeout: 240_000,
  }, async () => {
    const gateway = await testGateway();
    const box = await startBox({ transport: 'mqtt', url: gateway.mqttUrl });
    await eventually('online', () => isReady(box), 60_000);
    const qrCode = qrFor();
    const send = async (orderId: string) => (await gateway.sendQr({ orderId, qrCode })).body;
    expect(await send('FIRST')).toEqual({ status: 'SUCCESS', message: '' });
    const beforeBytes = keptBytes();
    const answers: Record<string, number> = {};
    const startedMs = performance.now();
    let sent = 0;
    const lane = async () => {
      while (performance.now() - startedMs < SECONDS * 1000) {
        sent += 1;
        const { status, message } = await send(`DH${sent}`);
        const answer = status === 'SUCCESS' ? 'SUCCESS' : String(message);
        answers[answer] = (answers[answer] ?? 0) + 1;
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, lane));
    expect(Object.values(answers).reduce((sum, count) => sum + count, 0)).toBe(sent);
    const named = ['SUCCESS', 'REPLACED', 'BOX_TIMEOUT', 'WITHDRAWN'];
    expect(Object.keys(answers).filter((answer) => !named.includes(answer))).toEqual([]);
    const last = async () => (await send('LAST')).status === 'SUCCESS';
    await eventually('a push that works', last, 60_000);
    expect((await box.status()).order?.orderId).toBe('LAST');
    const keptMb = Math.round((keptBytes() - beforeBytes) / 1e6);
    process.stdout.write(`flood of a gateway: ${sent} pushes, ${JSON.stringify(answers)}; ${keptMb} MB kept\n`);
    expect(keptMb).toBeLessThan(KEPT_BYTES_MAX / 1e6);
  });
});
