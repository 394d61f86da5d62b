import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { connectFakeBox, type FakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { ENGINES, postgresServer } from '../support/stores.ts';
import { gatewayProgram } from './gateway-program.ts';
import { BOX1, partnerServer, processed } from './harness.ts';
import { hookedGateway, SEPAY, sepayBody, tellHook } from './hooks.ts';

const KILLED_AFTER_MS = ['stored', 'stored', 3, 9] as const;

const webhook = (n: number) => sepayBody({ id: n + 1, referenceCode: `FT${n}`, content: `payment ${n}` });

describe.each(ENGINES)('a gateway that is killed between storing and answering, on $name', ({ missing, places }) => {
  const place = places();

  it.skipIf(missing)('CRE-1 CRE-2 loses no credit, and pays and announces each once', async () => {
    const partner = await partnerServer(processed);
    const { program, log, reach } = await gatewayProgram(await place(), partner.url, { sources: [SEPAY] });
    const told = new Set<string>();
    const hear = async (box: FakeBox, count: number) => {
      await eventually(`payment ${count}`, () => {
        for (const { transactionId } of box.of('payment')) told.add(transactionId);
        return told.size >= count;
      });
    };
    for (const [n, when] of KILLED_AFTER_MS.entries()) {
      const box = await connectFakeBox({ gateway: reach, identity: BOX1, transport: 'http' });
      const { length } = log;
      const answered = tellHook(reach, webhook(n)).catch(() => undefined);
      if (when === 'stored') {
        await eventually('a stored credit', () => log.slice(length).some(({ event }) => event === 'credit'));
      } else {
        await delay(when);
      }
      for (const { transactionId } of box.of('payment')) told.add(transactionId);
      await program.kill();
      await Promise.all([answered, box.close()]);
      program.start();
      await program.ready();
      const again = await connectFakeBox({ gateway: reach, identity: BOX1, transport: 'http' });
      // As a source does that has got no answer, or two.
      for (let i = 0; i < 2; i += 1) expect((await tellHook(reach, webhook(n))).status).toBe(200);
      await hear(again, n + 1);
      for (const { transactionId, orderId, amount } of again.of('payment')) {
        await again.send({ type: 'paid', transactionId, orderId, amount, recorded: true }, transactionId);
      }
      await again.close();
    }
    const rows = async (list: string) => (await (await fetch(`${reach.origin}/_mock/${list}`)).json()) as object[];
    expect([(await rows('credits')).length, (await rows('payments')).length, told.size]).toEqual([4, 4, 4]);
    const synced = () => new Set(partner.calls.map(({ body }) => JSON.parse(body).transactionid as string));
    await eventually('the callbacks', () => synced().size === told.size);
    expect(synced()).toEqual(told);
  });
});

const { missing, note } = without(PROGRAMS.postgres);

describe.skipIf(missing)(`a hook whose database goes away${note}`, () => {
  const server = postgresServer();

  it('SRC-4 answers 503, and takes the credit when the database is back', async () => {
    const gateway = await hookedGateway({ config: { databaseUrl: await server().database() } });
    const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
    await server().stop();
    const answer = await tellHook(gateway, webhook(1));
    expect([answer.status, answer.body]).toEqual([503, { success: false, message: 'E05' }]);
    expect(box.of('payment')).toEqual([]);
    await server().start();
    await eventually('success', async () => (await tellHook(gateway, webhook(1))).status === 200);
    await box.next('payment');
    expect(await gateway.mock('/payments')).toHaveLength(1);
  });
});
