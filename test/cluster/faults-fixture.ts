import { expect } from 'vitest';
import { postgresServer } from '../support/stores.ts';
import { type Row, startGateways, type TestGateway } from './gateways.ts';

/** Two gateways with 20 boxes, on a server of this `describe`. */
export function twoGateways() {
  const server = postgresServer();
  return async () => {
    const databaseUrl = await server().database();
    const cluster = await startGateways({ databaseUrl, gateways: 2, accounts: 20 });
    const [first, second] = cluster.gateways as [TestGateway, TestGateway];
    return { cluster, first, second };
  };
}

export async function standing(gateway: TestGateway): Promise<Row[]> {
  const { status, body } = await gateway.admin('/_mock/faults');
  expect(status).toBe(200);
  return (body as { standing: Row[] }).standing;
}

export async function ordered(gateway: TestGateway, order: object): Promise<string> {
  const { status, body } = await gateway.admin('/_mock/faults', 'POST', order);
  expect([status, body]).toEqual([201, { ...order, id: expect.any(String), happened: expect.any(Number) }]);
  return (body as { id: string }).id;
}
