import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Store } from '../../src/gateway/store/store.ts';
import { keptLog } from '../support/kept-log.ts';
import { eventuallyDone, temporaryFolder } from '../support/net.ts';
import { signalTo } from '../support/processes.ts';
import { startProxy } from '../support/proxy.ts';
import { postgresServer } from '../support/stores.ts';
import { opened, order } from './rows.ts';

const LOCKS = `from pg_locks where locktype = 'advisory'
  and database = (select oid from pg_database where datname = current_database())`;

/** Stops a process of the server; it goes on when told, or when the test ends. */
export function stopped(pid: number): () => void {
  signalTo(pid, 'SIGSTOP');
  const goOn = () => signalTo(pid, 'SIGCONT');
  onTestFinished(goOn);
  return goOn;
}

export const noFolder = async () => join(await temporaryFolder(), 'none');

export const works = (store: Store, id: string) => eventuallyDone(`order ${id}`, () => store.orders.add(order(id)));

/** A server of this `describe`, with stores whose own session at it can be stopped. */
export function ownSessions() {
  const server = postgresServer();
  return {
    /** Processes at the server that have the lock, or wait for it. */
    sessions: async (url: string, granted: boolean) =>
      (await server().run(url, `select pid ${LOCKS} and granted = ${granted}`)).map(({ pid }) => Number(pid)),
    /** A store whose connections can be cut, so that nothing waits for the 6 s of a lost answer. */
    setUp: async () => {
      const proxy = await startProxy({ port: server().port });
      onTestFinished(() => proxy.close());
      const databaseUrl = await server().database();
      const near = Object.assign(new URL(databaseUrl), { port: String(proxy.port) }).href;
      const { log, lines } = keptLog();
      const store = await opened({ dataDir: await noFolder(), databaseUrl: near }, log);
      await store.orders.add(order('before'));
      let supersededBy: unknown;
      void store.superseded?.then((error) => {
        supersededBy = error;
      });
      return { store, proxy, databaseUrl, lines, supersededBy: () => supersededBy };
    },
  };
}
