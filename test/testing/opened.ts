// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is how scenarios write variables
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished } from 'vitest';
import { openPaybox, type Paybox, type PayboxOptions } from '../../src/bench/library/index.ts';
export const TAKEN = { error: false, errorReason: '000', toastMessage: '', object: { reftransactionid: 'ref-1' } };

export async function opened(options: PayboxOptions = {}): Promise<Paybox> {
  const paybox = await openPaybox({ screens: false, ...options });
  onTestFinished(() => paybox.close());
  return paybox;
}

/** A shop of its own: takes callbacks after a while, and sells by the service. */
export async function shop(answersAfterMs = 0) {
  const taken: unknown[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    taken.push(JSON.parse(Buffer.concat(chunks).toString()));
    await delay(answersAfterMs);
    response.setHeader('content-type', 'application/json').end(JSON.stringify(TAKEN));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { taken, callbackUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/sync` };
}

/** What is thrown; fails where nothing is. */
export async function thrownBy(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => expect.unreachable('nothing was thrown'),
    (error: unknown) => error,
  );
}
