import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type FaultName, magicContent } from '../../src/protocol/faults.ts';
import type { StorePlace } from '../../src/store/store.ts';
import { NODE } from '../benchmarks/fixture.ts';
import { type LogLine, Program } from '../kill/program.ts';
import { eventually, freePort } from '../support/net.ts';
import { cliScript } from '../support/program-code.ts';
import { ENGINES } from '../support/stores.ts';
import { Market, type Stall } from './faults-market.ts';
import { ACCOUNT, BOXES, OTHER_ACCOUNT, processed } from './harness.ts';

const LONG_SECONDS = 600;
/** Longer than from an attempt to the kill, and short enough to wait for after it. */
const RETRY_MS = 3_000;

/** A gateway as a program of its own, on ports that stay the same. */
async function gatewayProgram({ dataDir, databaseUrl }: StorePlace, url: string) {
  const [http, mqtt] = [await freePort(), await freePort()];
  const partner = { username: 'demo', password: 'demo-secret' };
  const accounts = [ACCOUNT.bankAccount, OTHER_ACCOUNT.bankAccount];
  const config = {
    http: { port: http },
    mqtt: { embedded: { port: mqtt } },
    dataDir,
    databaseUrl,
    accounts: [ACCOUNT, OTHER_ACCOUNT],
    boxes: BOXES,
    partners: [{ ...partner, accounts, callback: { url } }],
    callbackRetryWaitsMs: [RETRY_MS, 100, 100, 100],
  };
  const file = join(dataDir, 'gateway.yaml');
  await writeFile(file, JSON.stringify(config));
  const log: LogLine[] = [];
  const program = new Program({
    name: 'gateway',
    command: NODE,
    args: [cliScript(), 'gateway', '--config', file],
    isReady: (line) => line.event === 'ready',
    retryCodes: [],
    onLine: (line) => void log.push(line),
  });
  onTestFinished(() => program.kill());
  program.start();
  await program.ready();
  const origin = `http://127.0.0.1:${http}`;
  return { program, log, reach: { origin, baseUrl: `${origin}/vqr`, mqttUrl: `mqtt://127.0.0.1:${mqtt}` } };
}

describe.each(ENGINES)('a gateway that is killed in the midst of its faults, on $name', ({ missing, places }) => {
  const place = places();

  it.skipIf(missing)('FLT-11 MSG-7 has none of them after it, and no money is lost or told twice', async () => {
    const gateways: Awaited<ReturnType<typeof gatewayProgram>>[] = [];
    const calls: string[] = [];
    let hung = '';
    const market = await Market.open(
      async (url) => {
        const gateway = await gatewayProgram(await place(), url);
        gateways.push(gateway);
        return gateway.reach;
      },
      [
        (call, response, request) => {
          const { content } = JSON.parse(call.body) as { content: string };
          calls.push(content);
          // The duplicate is under way for ever.
          if (content !== hung || calls.filter((it) => it === hung).length !== 2) processed(call, response, request);
        },
      ],
    );
    const [gateway] = gateways;
    const [first, second, third] = market.stalls;
    if (gateway === undefined || first === undefined || second === undefined || third === undefined)
      throw new Error('no');
    const hasHappened = (fault: FaultName) =>
      eventually(fault, () => gateway.log.some((it) => it.event === 'fault' && it.fault === fault));
    const order = async (fault: FaultName, content: string, seconds?: number) => {
      await market.order({ fault, content, ...(seconds === undefined ? {} : { seconds }) });
    };
    const paid = async (at: Stall, content: string) => {
      const { sold, transactionId } = await market.trade(at, content);
      expect([sold, transactionId]).toEqual(['', expect.any(String)]);
    };

    hung = 'DUPLICATE';
    await order('sync-twice', hung);
    await paid(first, hung);
    await eventually('the duplicate', () => calls.filter((it) => it === hung).length === 2);
    await order('sync-late', 'LATE', LONG_SECONDS);
    await paid(second, 'LATE');
    await order('paid-late', 'UNHEARD', LONG_SECONDS);
    await paid(third, 'UNHEARD');
    const [magicSync, magicTwice] = [magicContent('sync-late'), magicContent('paid-twice')];
    await paid(first, magicSync);
    expect((await market.sell(first, magicTwice)).sold).toBe('');
    await order('push-late', 'PUSHED', LONG_SECONDS);
    const pushed = market.sell(second, 'PUSHED').catch((error: unknown) => ({ sold: String(error) }));
    await order('partner-500', 'RETRY');
    await paid(third, 'RETRY');
    for (const it of ['sync-late', 'paid-late', 'push-late', 'partner-500'] as const) await hasHappened(it);
    await eventually('the first of two attempts', async () => {
      const { callbacks } = await market.books();
      return callbacks.some((it) => it.attempts.some(({ response }) => response?.status === 500));
    });
    expect(await market.standing()).toHaveLength(3);
    expect(calls.filter((it) => it !== hung)).toEqual(['RETRY']);

    await gateway.program.kill();
    gateway.program.start();
    await gateway.program.ready();
    expect((await pushed).sold).toContain('Error');
    expect(await market.standing()).toEqual([]);
    for (const at of market.stalls) await market.isWell(at);
    await market.expectRight({ again: 1 });
    expect(calls.toSorted()).toEqual([hung, hung, magicSync, 'LATE', 'RETRY', 'RETRY', 'UNHEARD'].toSorted());
    expect((await second.box.status()).order).toBeNull();
    expect(second.box.logged('push-shown')).toHaveLength(1);

    await market.pay(first, magicTwice);
    await market.expectRight({ again: 1 });
    const { payments } = await market.books();
    expect(payments.filter((it) => it.content === magicTwice)).toHaveLength(2);
    await Promise.all(market.stalls.map((at) => market.tradeFlawlessly(at)));
    await market.expectRight({ again: 1 });
  });
});
