import { connect } from 'node:net';

export interface Answer {
  /** 0 where nothing that begins like HTTP came back. */
  status: number;
  body: string;
  /** Everything that came back. */
  text: string;
}

const ANSWER_CHARS_MAX = 2_000_000;

/**
 * Sends bytes over a connection of their own and reads what comes until the peer ends it, or until `patienceMs` are over,
 * for bytes that are not a whole request. Never rejects.
 */
export function exchange(port: number, bytes: Uint8Array, patienceMs?: number): Promise<Answer> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      text = (text + chunk).slice(0, ANSWER_CHARS_MAX);
    });
    socket.on('error', () => undefined);
    const timer = patienceMs === undefined ? undefined : setTimeout(() => socket.end(), patienceMs);
    socket.on('close', () => {
      clearTimeout(timer);
      resolve(answerIn(text));
    });
    socket.write(bytes);
  });
}

function answerIn(text: string): Answer {
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1] ?? 0);
  return { status, body: text.slice(text.indexOf('\r\n\r\n') + 4), text };
}

/** A whole request, with its true length. */
export function requestOf(line: string, headers: Record<string, string | Uint8Array>, body: Uint8Array): Buffer {
  const all = { host: '127.0.0.1', connection: 'close', 'content-length': String(body.length), ...headers };
  const parts = Object.entries(all).flatMap(([name, value]) => [
    Buffer.from(`${name}: `),
    Buffer.from(value),
    Buffer.from('\r\n'),
  ]);
  return Buffer.concat([Buffer.from(`${line} HTTP/1.1\r\n`), ...parts, Buffer.from('\r\n'), body]);
}
