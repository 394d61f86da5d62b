import { writeFile } from 'node:fs/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../support/net.ts';
import { startReplica } from '../support/postgres.ts';
import { startProxy } from '../support/proxy.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { joined } from './joined.ts';
import { pay } from './rows.ts';

describe.skipIf(missing)(`gateways that share a PostgreSQL database which fails over${note}`, () => {
  const server = postgresServer();

  /** Two gateways, and one address in front of the server and its standby. */
  async function behindOneAddress() {
    const url = await server().database();
    const replica = await startReplica(server());
    onTestFinished(async () => {
      await replica.remove();
      await server().run(url, `select pg_drop_replication_slot('${replica.name}')`);
    });
    const proxy = await startProxy({ port: server().port });
    onTestFinished(() => proxy.close());
    const at = (port: number) => Object.assign(new URL(url), { port: String(port) }).href;
    const [a, b] = [await joined(at(proxy.port), 'a'), await joined(at(proxy.port), 'b')];
    const leadTo = async (port: number) => {
      // Nobody was seen there for a while. This is about payments, so none of them counts as gone for that.
      await server().run(at(port), "update cluster.gateways set seen_at = clock_timestamp() + interval '5 s'");
      proxy.aim({ port });
      proxy.cut();
    };
    const failOver = async () => {
      await replica.promote();
      await leadTo(replica.port);
    };
    return { a, b, there: at(replica.port), replica, failOver, failBack: () => leadTo(server().port) };
  }

  it('STO-5 all refuse a standby that lacks the newest payments of one of them, until an admin accepts the loss', async () => {
    const { a, b, there, replica, failOver } = await behindOneAddress();
    for (const n of [1, 2]) for (const [name, { store }] of Object.entries({ a, b })) await pay(store, `${name}${n}`);
    await replica.catchUp();
    await replica.disconnect();
    await pay(a.store, 'a3');
    await failOver();
    const problem = 'payment 3 of gateway a is missing, which had been acknowledged';
    for (const { lines } of [a, b]) {
      await eventually(
        'it to say so',
        () => lines.find(({ event }) => event === 'payments-missing')?.problem === problem,
      );
    }
    for (const { store } of [a, b]) await expect(pay(store, 'more')).rejects.toThrow(problem);
    const named = a.lines.filter(({ event }) => event === 'payment-missing');
    expect(named).toMatchObject([{ number: 3, transactionId: 'a3' }]);
    expect(await replica.run(there, 'select id from payments order by id')).toHaveLength(4);

    await b.store.close();
    await writeFile(b.accept, '');
    const again = await b.open();
    await pay(again, 'b3');
    await eventually('a to go on', () => a.lines.some(({ event }) => event === 'payments-recovered'));
    await pay(a.store, 'a4');
    const ids = (await again.payments.newest(10)).map(({ id }) => id);
    expect(ids.toReversed()).toEqual(['a1', 'b1', 'a2', 'b2', 'b3', 'a4']);
  });

  it('STO-5 all go on by themselves once the address leads back to the server that has the payments', async () => {
    const { a, b, replica, failOver, failBack } = await behindOneAddress();
    for (const [name, { store }] of Object.entries({ a, b })) await pay(store, `${name}1`);
    await replica.catchUp();
    await replica.disconnect();
    await pay(a.store, 'a2');
    await failOver();
    for (const { lines } of [a, b]) {
      await eventually('it to say so', () => lines.some(({ event }) => event === 'payments-missing'));
    }
    await failBack();
    for (const { lines } of [a, b]) {
      await eventually('it to go on', () => lines.some(({ event }) => event === 'payments-recovered'));
    }
    await pay(b.store, 'b2');
    await pay(a.store, 'a3');
    const ids = (await a.store.payments.newest(10)).map(({ id }) => id);
    expect(ids.toReversed()).toEqual(['a1', 'b1', 'a2', 'b2', 'a3']);
  });
});
