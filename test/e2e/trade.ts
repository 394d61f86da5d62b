import { GENERATE, order, push, qrFor, type TestGateway } from '../gateway/harness.ts';

/** What a loaded machine may need beyond what the protocol allows. */
export const PATIENCE_MS = 60_000;

/** Makes an order without pushing it, and pays it; the transaction id. */
export async function payAnOrder(gateway: TestGateway, orderId: string): Promise<string> {
  await gateway.post(GENERATE, order({ orderId, content: orderId }));
  return (await gateway.mock<{ message: string }>(`/orders/${orderId}/pay`, 'POST')).message;
}

export const pushOf = (orderId: string) => push({ orderId, content: orderId, qrCode: qrFor({ purpose: orderId }) });

/** The payments that the box has said that it announced, as the gateway knows it. */
export async function reported(gateway: TestGateway): Promise<string[]> {
  const payments = await gateway.mock<{ id: string; boxes?: { reportedAt: unknown }[] }[]>('/payments');
  return payments.filter((it) => JSON.stringify(it).match(/"reportedAt":"?\d/)).map((it) => JSON.stringify(it));
}
