import { describe, expect, it } from 'vitest';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { BOX1 } from './harness.ts';
import { hookedGateway, sepayBody, tellHook } from './hooks.ts';

const webhook = (n: number) => sepayBody({ id: n + 1, referenceCode: `FT${n}`, content: `payment ${n}` });

describe.skipIf(missing)(`a hook whose database goes away${note}`, () => {
  const server = postgresServer();

  it('SRC-4 a hook whose database goes away answers 503, and accepts the credit when it is back', async () => {
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
