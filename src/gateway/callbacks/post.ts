import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';

/** An answer is read up to here (PROTOCOL.md, clause SYN-6). */
const ANSWER_BYTES_MAX = 65_536;

export interface Answer {
  status: number;
  body: string;
  /** Whether there was more than the limit. */
  cut: boolean;
}

/** Sends JSON and reads the answer. Rejects on a connection error and when `signal` aborts. */
export type Post = (url: string, headers: Record<string, string>, body: string, signal: AbortSignal) => Promise<Answer>;

/**
 * Sends JSON and reads the answer, up to 64 KiB. Redirects are not followed. Rejects on a connection error and when
 * `signal` aborts.
 */
export function postJson(
  url: string,
  headers: Record<string, string>,
  body: string,
  signal: AbortSignal,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const send = url.startsWith('https:') ? httpsRequest : httpRequest;
    const sent = send(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), ...headers },
      // A kept connection that the partner closes meanwhile would fail an attempt that it never saw.
      agent: false,
      signal,
    });
    sent.once('error', reject);
    sent.once('response', (response) => readUpTo(response, ANSWER_BYTES_MAX).then(resolve, reject));
    sent.end(body);
  });
}

async function readUpTo(response: IncomingMessage, bytesMax: number): Promise<Answer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response) {
    chunks.push(chunk as Buffer);
    size += (chunk as Buffer).length;
    if (size > bytesMax) break;
  }
  const body = Buffer.concat(chunks).subarray(0, bytesMax).toString('utf8');
  return { status: response.statusCode ?? 0, body, cut: size > bytesMax };
}
