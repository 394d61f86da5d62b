import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { z } from 'zod';

/** Parts of the cluster to which each member has a cable of its own. */
export const FAR_ENDS = ['database', 'broker', 'members'] as const;
export type FarEnd = (typeof FAR_ENDS)[number];

/** A cable on loopback. */
export interface Cable {
  readonly port: number;
  /** Breaks the connections of now at both ends. */
  cut(): void;
  /** Holds back everything, also of new connections, until `resume`. */
  stall(): void;
  resume(): void;
}

/** The cables of one member: to the database, to the broker, and from the other members. */
export type Links = Readonly<Record<FarEnd, Cable>>;

/** Lays the cables of members that listen at `members`. The caller closes them. */
export async function startLinks(ports: { database: number; broker: number; members: readonly number[] }) {
  const targets = ports.members.flatMap((member) => [ports.database, ports.broker, member]);
  const worker = new Worker(new URL('./links-worker.ts', import.meta.url), { workerData: targets });
  const [message] = (await once(worker, 'message')) as [unknown];
  const cables = z
    .array(z.int())
    .parse(message)
    .map((port, at): Cable => {
      const tell = (what: 'cut' | 'stall' | 'resume') => () => worker.postMessage({ at, what });
      return { port, cut: tell('cut'), stall: tell('stall'), resume: tell('resume') };
    });
  const links = ports.members.map((_, i): Links => {
    const [database, broker, members] = cables.slice(FAR_ENDS.length * i);
    if (database === undefined || broker === undefined || members === undefined) throw new Error('no cable');
    return { database, broker, members };
  });
  return { links, close: () => worker.terminate() };
}

/** The same address at another port of this machine. */
export function atPort(url: string, port: number): string {
  return url.replace(/:\d+\//, `:${port}/`);
}
