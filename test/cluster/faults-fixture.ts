import { expect } from 'vitest';
import { PROGRAMS, without } from '../support/programs.ts';
import type { Row, TestMember } from './members.ts';

export const { missing, note } = without(PROGRAMS.postgres);
export const SHARDS = 4;

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
