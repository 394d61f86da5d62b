import { expect } from 'vitest';
import { connectFakeBox, type FakeBox } from '../support/fake-box.ts';
import { type PayosDouble, payosDouble } from '../support/payos-double.ts';
import { BOX1, partnerServer, processed, type TestGateway, testGateway } from './harness.ts';

export const MAKE = 'POST /v2/payment-requests';
export const CANCEL = 'POST /v2/payment-requests/*/cancel';
export const LOOK = 'GET /v2/payment-requests/*';

export interface Shop {
  payos: PayosDouble;
  gateway: TestGateway;
  box: FakeBox;
  calls: { body: string }[];
  /** Makes an order and pushes it to the box. */
  show(): Promise<Record<string, unknown>>;
  sell(amount?: number): Promise<{ status: number; body: Record<string, unknown> }>;
  orderStatus(): Promise<unknown>;
}

/** A gateway whose QRs payOS makes, with a box that shows what it is sent. */
export async function shopWith(
  payos: PayosDouble,
  { source = payos.source(), config = {}, ...options }: Record<string, unknown> & { source?: object } = {},
): Promise<Shop> {
  const { url, calls } = await partnerServer(processed);
  const gateway = await testGateway({
    callback: { url },
    ...options,
    config: { sources: [source], ...(config as object) },
  });
  const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'http' });
  const show = async () => {
    const { body } = await gateway.generate();
    const pushed = await gateway.sendQr({ qrCode: body.qrCode, content: body.content });
    expect(pushed.body).toEqual({ status: 'SUCCESS', message: '' });
    return body;
  };
  const sell = async (amount = 50_000) => {
    const answer = await fetch(`${gateway.origin}/admin/v1/sales`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ amount, terminalCode: BOX1.terminalCode }),
    });
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  };
  const orderStatus = async () => (await gateway.mock('/orders'))[0]?.status;
  return { payos, gateway, box, calls, show, sell, orderStatus };
}
export const shop = async (how?: Parameters<typeof shopWith>[1]) => shopWith(await payosDouble(), how);
