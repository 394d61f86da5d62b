import { rename } from 'node:fs/promises';
import Fastify from 'fastify';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Health } from '../../src/gateway/common/health.ts';
import { placeAlone } from '../../src/gateway/common/place.ts';
import { Readiness } from '../../src/gateway/common/readiness.ts';
import type { DatabaseClock } from '../../src/gateway/store/engines/database-clock.ts';
import type { StoreSharing } from '../../src/gateway/store/engines/store-sharing.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { testGateway } from './harness.ts';
import { only } from './stage-records.ts';

const ALONE = placeAlone('run');
const SHARED = { ...ALONE, sharing: only<StoreSharing>({}) };
const NO_CLOCK = only<DatabaseClock>({ state: undefined });
const STOPPING = { status: 503, body: { status: 'failed', reason: 'it is stopping' } };

async function ask(origin: string, path = '/readyz'): Promise<{ status: number; body: unknown }> {
  // A connection of its own each time, as a proxy makes it for a check.
  const answer = await fetch(`${origin}${path}`, { headers: { connection: 'close' } });
  return { status: answer.status, body: await answer.json() };
}

describe('/readyz of a gateway alone', () => {
  it('STO-7 /readyz says that the gateway accepts calls, or why not, while /livez says that it runs', async () => {
    const dataDir = await temporaryFolder();
    const gateway = await testGateway({ dataDir, config: { mqtt: null } });
    expect(await ask(gateway.origin)).toEqual({ status: 200, body: { status: 'ok' } });
    await rename(dataDir, `${dataDir}-away`);
    const refused = await eventually('the refusal', async () => {
      const answer = await ask(gateway.origin);
      return answer.status === 503 && answer;
    });
    const reason = expect.stringContaining('gateway.sqlite was deleted, emptied, moved or replaced');
    expect(refused.body).toEqual({ status: 'failed', reason });
    expect(await ask(gateway.origin, '/livez')).toEqual({ status: 200, body: { status: 'ok' } });
    await rename(`${dataDir}-away`, dataDir);
    await eventually('calls again', async () => (await ask(gateway.origin)).status === 200);
  });

  it('STO-7 /readyz tells a proxy that asks that the gateway stops, before it accepts no connection any more', async () => {
    const gateway = await testGateway({ config: { mqtt: null } });
    expect((await ask(gateway.origin)).status).toBe(200);
    const closed = gateway.close();
    expect(await ask(gateway.origin)).toEqual(STOPPING);
    await closed;
    await expect(ask(gateway.origin)).rejects.toThrow('fetch failed');
  });
});

describe('whether a process takes calls', () => {
  /** A server that answers `/readyz`, and what it says about itself. */
  const setUp = async () => {
    const clock = new VirtualClock();
    const readiness = new Readiness(clock, async () => undefined);
    const app = Fastify();
    app.get('/readyz', (request, reply) => readiness.answer(request, reply));
    onTestFinished(() => app.close());
    const answer = async () => (await app.inject('/readyz')).statusCode;
    let isStopped = false;
    const stop = () =>
      readiness.stop().then(() => {
        isStopped = true;
      });
    return { clock, answer, stop, isStopped: () => isStopped };
  };

  it('readiness is answered once more at the end to a proxy that has just asked', async () => {
    const { clock, answer, stop, isStopped } = await setUp();
    expect(await answer()).toBe(200);
    await clock.advance(4_999);
    const stopping = stop();
    await clock.advance(599);
    expect(isStopped()).toBe(false);
    expect(await answer()).toBe(503);
    await stopping;
  });

  it('readiness waits for no proxy that has stopped asking, and never for long', async () => {
    const { clock, answer, stop, isStopped } = await setUp();
    await answer();
    const stopping = stop();
    await clock.advance(600);
    await stopping;
    const other = await setUp();
    await other.answer();
    await other.clock.advance(5_000);
    await other.stop();
    expect([isStopped(), other.isStopped()]).toEqual([true, true]);
  });

  it('readiness is asked of the store every 2 s while it is healthy, and every second while it is not', async () => {
    const clock = new VirtualClock();
    const answers: PromiseWithResolvers<void>[] = [];
    const check = () => {
      const answer = Promise.withResolvers<void>();
      answers.push(answer);
      return answer.promise;
    };
    let isBrokerThere = true;
    const { readiness } = new Health(clock, { check }, NO_CLOCK, () => isBrokerThere, ALONE);
    // Nothing is known yet: the first answer is waited for.
    const first = readiness.problem();
    answers[0]?.resolve();
    expect(await first).toBeUndefined();
    await clock.advance(1_999);
    expect([await readiness.problem(), answers.length]).toEqual([undefined, 1]);
    await clock.advance(1);
    // Told at once as it was before, while the store is asked.
    expect([await readiness.problem(), answers.length]).toEqual([undefined, 2]);
    answers[1]?.reject(new Error('the disk is out'));
    await clock.advance(0);
    expect(await readiness.problem()).toBe('the disk is out');
    await clock.advance(999);
    expect([await readiness.problem(), answers.length]).toEqual(['the disk is out', 2]);
    await clock.advance(1);
    expect([await readiness.problem(), answers.length]).toEqual(['the disk is out', 3]);
    answers[2]?.resolve();
    await clock.advance(0);
    expect(await readiness.problem()).toBeUndefined();
    isBrokerThere = false;
    expect(await readiness.problem()).toBe('the MQTT broker is not connected');
  });

  it('STO-7 a gateway that reaches boxes at others takes calls without its broker, and its health says that it is away', async () => {
    const clock = new VirtualClock();
    const health = new Health(clock, { check: async () => undefined }, NO_CLOCK, () => false, SHARED);
    expect(await health.readiness.problem()).toBeUndefined();
    expect(await health.problem()).toBe('the MQTT broker is not connected');
  });

  it('STO-7 SHA-5 a gateway whose work others may have taken over takes no calls, although its store has just answered', async () => {
    const clock = new VirtualClock();
    let problem: string | undefined;
    const place = { ...SHARED, problem: () => problem };
    const { readiness } = new Health(clock, { check: async () => undefined }, NO_CLOCK, () => true, place);
    expect(await readiness.problem()).toBeUndefined();
    problem = 'it was not seen';
    expect(await readiness.problem()).toBe('it was not seen');
  });

  it('readiness waits for the store again where a proxy asks rarely: the last answer is too old by then', async () => {
    const clock = new VirtualClock();
    let isBroken = false;
    const check = async () => {
      if (isBroken) throw new Error('the disk is out');
    };
    const { readiness } = new Health(clock, { check }, NO_CLOCK, () => true, ALONE);
    expect(await readiness.problem()).toBeUndefined();
    isBroken = true;
    await clock.advance(7_001);
    expect(await readiness.problem()).toBe('the disk is out');
  });

  it('readiness is answered at once while the store is slow, and refused once that has not answered for 5 s', async () => {
    const clock = new VirtualClock();
    let hanging: Promise<void> | undefined;
    const { readiness } = new Health(clock, { check: async () => hanging }, NO_CLOCK, () => true, ALONE);
    expect(await readiness.problem()).toBeUndefined();
    hanging = new Promise(() => undefined);
    const asked: (string | undefined)[] = [];
    for (const passedMs of [2_000, 4_999, 1, 1_000]) {
      await clock.advance(passedMs);
      asked.push(await readiness.problem());
    }
    const late = (ms: number) => `the store does not answer within ${ms} ms`;
    expect(asked).toEqual([undefined, undefined, late(5_000), late(2_000)]);
  });

  it('readiness is refused after 2 s where nothing is known yet, and at once from then on', async () => {
    const clock = new VirtualClock();
    const check = () => new Promise<void>(() => undefined);
    const health = new Health(clock, { check }, NO_CLOCK, () => true, ALONE);
    const hangs = 'the store does not answer within 2000 ms';
    const first = health.readiness.problem();
    await clock.advance(2_000);
    expect(await first).toBe(hangs);
    await clock.advance(5_000);
    const later = health.readiness.problem();
    await clock.advance(0);
    expect(await later).toBe(hangs);
  });
});
