import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What the partner does with one call: answers it, fails, or hangs up without a word. */
export type Reaction = 'answer' | 'fail' | 'hang-up';

/** What one transaction's callbacks were. */
export interface Called {
  times: number;
  /** Digests of the bodies; more than one means that the bytes differed. */
  bodies: Set<string>;
}

/** A partner's transaction-sync endpoint that lives through every kill, and remembers every call. */
export interface PartnerEndpoint {
  readonly url: string;
  readonly calls: ReadonlyMap<string, Called>;
  /** What the next calls meet, the first first; after them every call is answered. */
  reactions: Reaction[];
  /** Told of each call when its body is there, before it is answered. */
  onCall: (() => void) | undefined;
  close(): Promise<void>;
}

export async function startPartnerEndpoint(): Promise<PartnerEndpoint> {
  const calls = new Map<string, Called>();
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      // The gateway was killed in the middle of its call, which therefore never was one.
      return;
    }
    const body = Buffer.concat(chunks);
    const { transactionid } = JSON.parse(body.toString()) as { transactionid: string };
    const called = calls.get(transactionid) ?? { times: 0, bodies: new Set() };
    calls.set(transactionid, called);
    called.times += 1;
    called.bodies.add(createHash('sha256').update(body).digest('hex'));
    endpoint.onCall?.();
    const reaction = endpoint.reactions.shift() ?? 'answer';
    if (reaction === 'hang-up') {
      request.socket.destroy();
      return;
    }
    response.statusCode = reaction === 'answer' ? 200 : 503;
    response.setHeader('content-type', 'application/json');
    const object = { reftransactionid: transactionid };
    response.end(JSON.stringify({ error: false, errorReason: '000', toastMessage: '', object }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const endpoint: PartnerEndpoint = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/paid`,
    calls,
    reactions: [],
    onCall: undefined,
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
  return endpoint;
}
