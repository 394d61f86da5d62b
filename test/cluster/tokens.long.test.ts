import { describe, expect, it } from 'vitest';
import { openStream } from '../gateway/admin.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { accountIn, shardsOf, startMembers, type TestMember } from './members.ts';

const SHARDS = 4;

describe.skipIf(missing)(`tokens in a cluster${note}`, () => {
  const server = postgresServer();

  it('ROL-1 ROL-4 ROL-5 THR-38 tokens hold at every member, for the boxes of every shard, and end at every member', async () => {
    const databaseUrl = await server().database();
    const cluster = await startMembers({ databaseUrl, members: 2, shards: SHARDS, accounts: 16 });
    const [first, second] = cluster.members as [TestMember, TestMember];
    // Two boxes, each in a shard of another member.
    const boxes = await Promise.all(
      cluster.members.map(async (member) => {
        const account = accountIn(cluster, await shardsOf(member));
        const box = cluster.boxes.find((it) => it.account === account);
        if (box === undefined) throw new Error(`no box has the account ${account}`);
        await connectFakeBox({
          ...{ gateway: first, identity: box, transport: 'http' },
          onShow: (it, show) => void it.shown(show),
        });
        return box.terminalCode;
      }),
    );
    const [own = '', other = ''] = boxes;
    const made = async (body: object) => {
      const { status, body: answer } = await first.admin('/admin/v1/tokens', 'POST', body);
      expect(status).toBe(201);
      return String((answer as { token: string }).token);
    };
    const till = await made({ name: 'till', role: 'cashier', boxes: [own] });
    const books = await made({ name: 'books', role: 'viewer' });
    const call = async (member: TestMember, token: string, path: string, method = 'GET', body?: object) => {
      const answer = await fetch(`${member.origin}${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) },
        ...(body && { body: JSON.stringify(body) }),
      });
      return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
    };
    const sales = '/admin/v1/sales';
    const sold = await call(second, till, sales, 'POST', { amount: 50_000, terminalCode: own });
    expect([sold.status, sold.body.soldBy]).toEqual([201, 'till']);
    const { status } = await first.admin(sales, 'POST', { amount: 70_000, terminalCode: other });
    expect(status).toBe(201);
    for (const member of cluster.members) {
      expect((await call(member, till, sales)).body).toMatchObject({ sales: 1, rows: [{ terminalCode: own }] });
      expect((await call(member, books, sales)).body).toMatchObject({ sales: 2 });
      expect((await call(member, till, sales, 'POST', { amount: 1, terminalCode: other })).body.message).toBe('E35');
      for (const path of ['/_mock/orders', '/_mock/events', '/admin/v1/boxes', '/_mock/callbacks/backlog']) {
        expect([path, (await call(member, till, path)).status]).toEqual([path, 403]);
      }
    }
    const cancelled = await call(second, till, `${sales}/${String(sold.body.id)}/cancel`, 'POST');
    expect([cancelled.status, cancelled.body.status]).toEqual([200, 'cancelled']);
    const { body: audit } = await second.admin('/admin/v1/audit?limit=1');
    expect(audit).toMatchObject([{ who: 'till', what: 'cancelled', target: `sales/${String(sold.body.id)}` }]);

    const streams = await Promise.all(
      cluster.members.map((member) => openStream(`${member.origin}/_mock/events`, books)),
    );
    expect(streams.map((it) => it.status)).toEqual([200, 200]);
    expect((await second.admin('/admin/v1/tokens/books', 'DELETE')).status).toBe(200);
    await Promise.all(streams.map((it) => it.ended));
    for (const member of cluster.members) expect((await call(member, books, '/_mock/orders')).status).toBe(401);
  });
});
