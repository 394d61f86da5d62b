import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** What came of one kind of attack: how often it was tried, and how often it ended in which way. */
export interface Outcome {
  target: 'gateway' | 'box';
  attack: string;
  attempts: number;
  /** `HTTP 400` and the like by the first answer, `closed` and `reset` without one, `open` when it was left so. */
  ended: Record<string, number>;
  /** Of the answers on one connection, the most. */
  answersMax: number;
}

interface Target {
  name: Outcome['target'];
  port: number;
  /** So many connections of one address it keeps. */
  room: number;
  /** A path that answers anybody, and one with a long answer. */
  path: string;
  longPath: string | undefined;
}

/** Not that of the honest client: as another machine of the same network. */
const FROM = '127.0.0.2';
const CONNECTIONS = 10_000;
/** Those that are slow all at once; of the others so many at a time, which both servers have room for. */
const AT_ONCE = 50;
const HOARD_AT_ONCE = 500;
/** Beyond every limit of the servers, which are late on a busy machine. */
const PATIENCE_MS = 60_000;
/** Who reads nothing begins to read after this time, and has until `READERS_PATIENCE_MS` to find out that it was cut. */
const READ_NOTHING_MS = 28_000;
const READERS_PATIENCE_MS = 50_000;
const REPEATS = 10;

const [name, port = '', room = '', path = '', longPath] = process.argv.slice(2);
const target: Target = {
  ...{ name: name === 'box' ? name : 'gateway', port: Number(port), room: Number(room), path, longPath },
};
const get = (at: string) => `GET ${at} HTTP/1.1\r\nHost: 127.0.0.1\r\n`;
const head = `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n`;

/** Opens a connection, has `act` do its worst, and says how it ended. */
async function attack(
  act: (socket: Socket) => void,
  patienceMs = PATIENCE_MS,
): Promise<{ how: string; answers: number }> {
  const socket = connect({ port: target.port, host: '127.0.0.1', localAddress: FROM, allowHalfOpen: true });
  let text = '';
  let answers = 0;
  let failure = 'closed';
  socket.on('data', (chunk: Buffer) => {
    const part = chunk.toString('latin1');
    if (text === '') text = part.slice(0, 12);
    answers += part.split('HTTP/1.1 ').length - 1;
  });
  socket.on('error', (error: NodeJS.ErrnoException) => {
    failure = error.code === 'EADDRNOTAVAIL' || error.code === 'EMFILE' ? `not made: ${error.code}` : 'reset';
  });
  socket.once('connect', () => act(socket));
  const over = new AbortController();
  const closed = new Promise<string>((resolve) => {
    socket.once('close', () => resolve(failure));
    socket.once('end', () => resolve(failure));
  });
  const late = delay(patienceMs, 'open', { signal: over.signal }).catch(() => 'open');
  const how = await Promise.race([closed, late]);
  over.abort();
  socket.destroy();
  const status = /^HTTP\/1\.1 (\d{3})/.exec(text)?.[1];
  const isOpen = how === 'open' ? ', left open' : '';
  return { how: status === undefined ? how : `HTTP ${status}${isOpen}`, answers };
}

type Act = (socket: Socket, index: number) => void;

async function many(kind: string, count: number, act: Act, { atOnce = AT_ONCE, patienceMs = PATIENCE_MS } = {}) {
  const ended: Record<string, number> = {};
  let answersMax = 0;
  let next = 0;
  const work = async () => {
    while (next < count) {
      const index = next;
      next += 1;
      const { how, answers } = await attack((socket) => act(socket, index), patienceMs);
      ended[how] = (ended[how] ?? 0) + 1;
      answersMax = Math.max(answersMax, answers);
    }
  };
  await Promise.all(Array.from({ length: Math.min(count, atOnce) }, work));
  const outcome: Outcome = { target: target.name, attack: kind, attempts: count, ended, answersMax };
  process.stdout.write(`${JSON.stringify(outcome)}\n`);
}

/** Sends one byte every so often for as long as the connection lives. */
function drip(socket: Socket, first: string, byte: string): void {
  socket.write(first);
  const timer = setInterval(() => socket.write(byte), 500);
  socket.once('close', () => clearInterval(timer));
}

/** Opens all of them and keeps what the server lets it keep. */
async function hoard(): Promise<void> {
  const held = new Set<Socket>();
  let made = 0;
  let lost = 0;
  const open = () =>
    new Promise<void>((resolve) => {
      const socket = connect({ port: target.port, host: '127.0.0.1', localAddress: FROM });
      socket.once('connect', () => {
        made += 1;
        held.add(socket);
        resolve();
      });
      socket.on('error', () => resolve());
      socket.once('close', () => {
        lost += 1;
        held.delete(socket);
      });
    });
  for (let i = 0; i < CONNECTIONS; i += HOARD_AT_ONCE) await Promise.all(Array.from({ length: HOARD_AT_ONCE }, open));
  // Until it has let go what is beyond its room, and the news of the last ones have come.
  const endMs = performance.now() + PATIENCE_MS;
  for (let before = -1; before !== lost || (held.size > target.room && performance.now() < endMs); await delay(500)) {
    before = lost;
  }
  const ended = { made, 'let go by the server': lost, kept: held.size };
  const outcome: Outcome = { target: target.name, attack: 'connections', attempts: CONNECTIONS, ended, answersMax: 0 };
  process.stdout.write(`${JSON.stringify(outcome)}\n`);
  for (const socket of held) socket.destroy();
}

/** Connections that pipeline, at most half of the room; each as many requests as a connection may have. */
const PIPELINING = 100;
const PIPELINED = 100;
const NEIGHBOUR = '127.0.0.3';

/** Sends bursts of requests on many connections, and counts their answers that come before that of a neighbour. */
async function pipeline(): Promise<void> {
  let answers = 0;
  const open = (from: string) =>
    new Promise<Socket>((resolve) => {
      const socket = connect({ port: target.port, host: '127.0.0.1', localAddress: from });
      socket.on('error', () => undefined);
      socket.once('connect', () => resolve(socket));
    });
  const answerOn = (socket: Socket) => new Promise<void>((resolve) => socket.once('data', () => resolve()));
  const count = Math.min(PIPELINING, target.room / 2);
  const hostile = await Promise.all(Array.from({ length: count }, () => open(FROM)));
  const neighbour = await open(NEIGHBOUR);
  neighbour.write(`${get(path)}\r\n`);
  await answerOn(neighbour);
  const begun = Promise.race(hostile.map(answerOn));
  for (const socket of hostile) {
    socket.on('data', (chunk: Buffer) => {
      answers += chunk.toString('latin1').split('HTTP/1.1 ').length - 1;
    });
    socket.write(`${get(path)}\r\n`.repeat(PIPELINED));
  }
  await begun;
  const before = answers;
  neighbour.write(`${get(path)}\r\n`);
  await answerOn(neighbour);
  const meanwhile = answers - before;
  const endMs = performance.now() + PATIENCE_MS;
  while (answers < count * PIPELINED && performance.now() < endMs) await delay(50);
  const ended = { answers, 'before the neighbour': meanwhile };
  const outcome = {
    target: target.name,
    attack: 'pipelined',
    attempts: count * PIPELINED,
    ended,
    answersMax: PIPELINED,
  };
  process.stdout.write(`${JSON.stringify(outcome satisfies Outcome)}\n`);
  for (const socket of [...hostile, neighbour]) socket.destroy();
}

const chunked = `${head}Transfer-Encoding: chunked\r\n`;
/** What two readers could understand differently, and what is no HTTP. */
const SHAPES: readonly string[] = [
  `${head}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  `${chunked}Content-Length: 4\r\n\r\n0\r\n\r\n`,
  `${head}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`,
  `${head}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`,
  `${head}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`,
  `${head}Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde`,
  `${head}Content-Length: +4\r\n\r\nabcd`,
  `${chunked.replace('HTTP/1.1', 'HTTP/1.0')}\r\n0\r\n\r\n`,
  `${get(path)}X: a\r\n b\r\n\r\n`,
  `${get(path).replaceAll('\r', '')}\n`,
  `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\nX: b\r\n\r\n`,
  `${get(path)}X: a\r\n\n`,
  `${get(path)}X: a\0b\r\n\r\n`,
  `${get(path)}Host: evil.example\r\n\r\n`,
  `GET ${path} HTTP/1.1\r\n\r\n`,
  `${chunked}\r\nzz\r\nab\r\n0\r\n\r\n`,
  `${chunked}\r\n2\nab\n0\n\n`,
  `${chunked}\r\n2\r\nabc\r\n0\r\n\r\n`,
  `${chunked}\r\nffffffffffffffffff\r\nab\r\n0\r\n\r\n`,
  `${chunked}\r\n2;${'a'.repeat(20_000)}\r\nab\r\n0\r\n\r\n`,
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n',
];

async function all(): Promise<void> {
  await pipeline();
  const allAtOnce = { atOnce: Number.POSITIVE_INFINITY };
  const slow = [
    many('slow headers', 200, (socket) => drip(socket, get(path), 'x'), allAtOnce),
    many('slow bodies', 50, (socket) => drip(socket, `${head}Content-Length: 60000\r\n\r\n`, '1'), allAtOnce),
    many('silence', 100, () => undefined, allAtOnce),
    many(
      'long bodies',
      50,
      (socket) => socket.write(`${head}Content-Length: 10000000\r\n\r\n${'1'.repeat(1_000_000)}`),
      allAtOnce,
    ),
    many(
      'endless chunks',
      50,
      (socket) => socket.write(`${chunked}\r\n${`1000\r\n${'1'.repeat(4096)}\r\n`.repeat(500)}`),
      allAtOnce,
    ),
  ];
  const { longPath: long } = target;
  if (long !== undefined) {
    // Reads nothing until every limit has passed, and then what was kept for it.
    const read = (socket: Socket) => {
      // So much that it cannot all be on its way.
      socket.write(`${get(long)}\r\n`.repeat(20));
      socket.pause();
      void delay(READ_NOTHING_MS).then(() => socket.resume());
    };
    slow.push(many('slow readers', 50, read, { patienceMs: READERS_PATIENCE_MS }));
  }
  await many('bad shapes', SHAPES.length * REPEATS, (socket, at) => socket.write(SHAPES[at % SHAPES.length] ?? ''), {
    patienceMs: 2000,
  });
  await many('long headers', 50, (socket) => socket.write(`${get(path)}X: ${'x'.repeat(1_000_000)}\r\n\r\n`));
  await many('many headers', 50, (socket) => socket.write(`${get(path)}${'a: b\r\n'.repeat(50_000)}\r\n`));
  await many('long addresses', 50, (socket) => socket.write(`${get(`${path}?${'x'.repeat(1_000_000)}`)}\r\n`));
  await many('1000 requests at once', 20, (socket) => socket.write(`${get(path)}\r\n`.repeat(1000)));
  const noise = (length: number) => Buffer.from(Array.from({ length }, (_, i) => (i * 7919 + length * 31) % 256));
  await many('noise', 500, (socket, at) => socket.write(noise(1 + at)), { patienceMs: 2000 });
  await many('half a request, then closed', 200, (socket) => socket.end(get(path)));
  await many('a request, then closed', 200, (socket) => socket.end(`${get(path)}Connection: close\r\n\r\n`));
  await Promise.all(slow);
  await hoard();
}

await all();
