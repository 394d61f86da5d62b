import { describe, expect, it } from 'vitest';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { startProxy } from '../support/proxy.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { callAt, PARTNER, startGateways, type TestGateway } from './gateways.ts';

const CHECKED_MS = 20_000;
/** A change is seen everywhere within 1 s. */
const SEEN_MS_MAX = 1_000;

describe.skipIf(missing)(`a change of the registry at one of several gateways${note}`, () => {
  const server = postgresServer();

  it('REG-5 SHA-4 reaches the sessions that it concerns at every gateway within 1 s, and no other', async () => {
    const databaseUrl = await server().database();
    const config = { registry: 'store' };
    const cluster = await startGateways({ databaseUrl, gateways: 2, accounts: 4, config });
    const [first, second] = cluster.gateways as [TestGateway, TestGateway];
    const [same, moved, removed] = cluster.boxes;
    const connected = await Promise.all(
      [same, moved, removed].map((identity) => {
        if (identity === undefined) return expect.fail('no box');
        return connectFakeBox({ gateway: { origin: second.origin, mqttUrl: undefined }, identity, transport: 'http' });
      }),
    );
    const refusals = () =>
      connected.map(({ received }) => received.flatMap((it) => (it.type === 'refused' ? it.code : [])));
    const account = cluster.accounts[3]?.bankAccount;
    const sinceMs = performance.now();
    expect((await first.admin(`/admin/v1/boxes/${moved?.terminalCode}/link`, 'POST', { account })).status).toBe(200);
    expect((await first.admin(`/admin/v1/boxes/${removed?.terminalCode}`, 'DELETE')).status).toBe(200);
    await eventually('the refusals', () => refusals().flat().length === 2);
    expect(performance.now() - sinceMs).toBeLessThan(SEEN_MS_MAX + 1_000);
    expect(refusals()).toEqual([[], ['SESSION_ENDED'], ['NOT_REGISTERED']]);
  });

  it('REG-5 SHA-4 reaches a gateway that was out of touch', async () => {
    const databaseUrl = await server().database();
    const proxy = await startProxy({ port: server().port });
    const far = Object.assign(new URL(databaseUrl), { port: String(proxy.port) }).href;
    const config = { registry: 'store' };
    const cluster = await startGateways({ databaseUrl, gateways: 1, config });
    const [near] = cluster.gateways as [TestGateway];
    const away = await cluster.start({ databaseUrl: far });
    await cluster.whole([near, away]);
    const identity = cluster.boxes[0] ?? expect.fail('no box');
    const gateway = { origin: away.origin, mqttUrl: undefined };
    const box = await connectFakeBox({ gateway, identity, transport: 'http' });
    expect(box.of('welcome')[0]?.link?.bankAccount).toBe(identity.account);
    // Its connections break, and so what it is told meanwhile is lost.
    proxy.cut();
    const account = cluster.accounts[1]?.bankAccount;
    const linked = await near.admin(`/admin/v1/boxes/${identity.terminalCode}/link`, 'POST', { account });
    expect(linked.status).toBe(200);
    await eventually('the end of its session', () => box.of('refused')[0]?.code === 'SESSION_ENDED', CHECKED_MS);
    await box.close();
    const again = await connectFakeBox({ gateway, identity, transport: 'http' });
    expect(again.of('welcome')[0]?.link?.bankAccount).toBe(account);
    await again.close();
    await away.close();
    await proxy.close();
  });

  it('MSG-14 a box that is linked to another account is no new box at another gateway: what came for it in between is news', async () => {
    const databaseUrl = await server().database();
    const partner = { ...PARTNER, callback: { url: 'http://127.0.0.1:9/sync' } };
    const cluster = await startGateways({ databaseUrl, gateways: 2, partner, config: { registry: 'store' } });
    const [first, second] = cluster.gateways as [TestGateway, TestGateway];
    const identity = cluster.boxes[0] ?? expect.fail('no box');
    const account = cluster.accounts[1]?.bankAccount ?? '';
    const at = ({ origin }: TestGateway) =>
      ({ gateway: { origin, mqttUrl: undefined }, identity, transport: 'http' }) as const;
    const before = await connectFakeBox(at(first));
    await before.close();
    const linked = await second.admin(`/admin/v1/boxes/${identity.terminalCode}/link`, 'POST', { account });
    expect(linked.status).toBe(200);
    const money = { bankAccount: account, content: 'NEWS', amount: 5_000, transType: 'C' };
    const paid = await callAt(first, '/bank/api/test/transaction-callback', money);
    expect(paid.status).toBe(200);
    const after = await connectFakeBox(at(second));
    expect(await after.next('payment')).toMatchObject({ transactionId: paid.body.message, late: false });
  });
});
