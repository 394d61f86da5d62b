import { expect } from 'vitest';
import { postgresServer } from '../support/stores.ts';
import { type Row, startMembers, type TestMember } from './members.ts';

export const SHARDS = 4;

/** Two members with 20 boxes, on a server of this `describe`. */
export function twoMembers() {
  const server = postgresServer();
  return async () => {
    const databaseUrl = await server().database();
    const cluster = await startMembers({ databaseUrl, members: 2, shards: SHARDS, accounts: 20 });
    const [first, second] = cluster.members as [TestMember, TestMember];
    return { cluster, first, second };
  };
}

export async function standing(member: TestMember, query = ''): Promise<Row[]> {
  const { status, body } = await member.admin(`/_mock/faults${query}`);
  expect(status).toBe(200);
  return (body as { standing: Row[] }).standing;
}

export async function ordered(member: TestMember, order: object): Promise<string> {
  const { status, body } = await member.admin('/_mock/faults', 'POST', order);
  expect([status, body]).toEqual([201, { ...order, id: expect.any(String), happened: expect.any(Number) }]);
  return (body as { id: string }).id;
}
