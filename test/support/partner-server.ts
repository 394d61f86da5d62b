import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export interface ReceivedCallback {
  path: string;
  authorization: string | undefined;
  body: Record<string, unknown>;
}

/** A partner's transaction-sync endpoint, written without the project's schemas. */
export async function startPartnerServer(): Promise<{ url: string; received: ReceivedCallback[] }> {
  const received: ReceivedCallback[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>;
    received.push({ path: request.url ?? '', authorization: request.headers.authorization, body });
    response.setHeader('content-type', 'application/json');
    const object = { reftransactionid: `ref-${received.length}` };
    response.end(JSON.stringify({ error: false, errorReason: '000', toastMessage: '', object }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/shop/paid`, received };
}
