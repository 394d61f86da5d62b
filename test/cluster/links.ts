import { startProxy, type TcpProxy } from '../support/proxy.ts';

/** Parts of the cluster to which each member has a cable of its own. */
export const FAR_ENDS = ['database', 'broker', 'members'] as const;
export type FarEnd = (typeof FAR_ENDS)[number];

/** The cables of one member: to the database, to the broker, and from the other members. */
export type Links = Readonly<Record<FarEnd, TcpProxy>>;

/** Lays the cables of a member that listens at `member`. */
export async function startLinks(ports: { database: number; broker: number; member: number }): Promise<Links> {
  const { database, broker, member } = ports;
  const [toDatabase, toBroker, toMember] = await Promise.all(
    [database, broker, member].map((port) => startProxy({ port })),
  );
  if (toDatabase === undefined || toBroker === undefined || toMember === undefined) throw new Error('no proxy');
  return { database: toDatabase, broker: toBroker, members: toMember };
}

/** The same address at another port of this machine. */
export function atPort(url: string, port: number): string {
  return url.replace(/:\d+\//, `:${port}/`);
}
