import { lookup } from 'node:dns';
import { EventEmitter } from 'node:events';
import { chmodSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import type { ReadStream } from 'node:tty';
import { watchButtons } from '../../../src/device/agent/peripherals/buttons.ts';
import { watchKeyboard } from '../../../src/device/agent/peripherals/keyboard.ts';
import type { Display } from '../../../src/device/display/contract.ts';
import { ledMatrix } from '../../../src/device/display/drivers/led-matrix.ts';
import { attemptCallback, createPost } from '../../../src/gateway/money/callbacks/attempt.ts';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import { PayboxError } from '../../../src/lib/errors.ts';
import { VirtualClock } from '../../../src/lib/virtual-clock.ts';
import { FakeLedMatrix } from '../../display/emulators/led-matrix.ts';
import type { Seeded } from '../../support/seeded.ts';
import { mutated } from '../bytes.ts';
import { listeningLog } from '../logs.ts';
import { hold, holdNamed, type Target } from '../target.ts';

/** Waits of a program that must not be waited for here, so many times shorter. */
const HURRY = 50;
const hurried: Clock = {
  ...systemClock,
  sleep: (ms, signal) => systemClock.sleep(ms / HURRY, signal),
};

const KEYS = [
  '\x1b',
  ' ',
  'd',
  'r',
  'h',
  '\x1b[A',
  '\x1b[200~paste\x1b[201~',
  'ế',
  '\x03',
  'dd',
  '\x1b_Gi=1;OK\x1b\\',
].map((it) => Buffer.from(it));
const ALONE_MS = 100;

/** Bytes of a terminal, each 0xFF a silence: only a key that stands alone is one, and Ctrl-C is told at once. */
const keyboard: Target['open'] = () => ({
  feed: async (input) => {
    const clock = new VirtualClock();
    const stdin = Object.assign(new EventEmitter(), {
      setRawMode: () => stdin,
      resume: () => stdin,
      pause: () => stdin,
    });
    const pressed: string[] = [];
    let interrupts = 0;
    const io = { clock, log: listeningLog(clock).log };
    const watched = watchKeyboard(
      stdin as unknown as ReadStream,
      io,
      (key) => void pressed.push(key),
      () => {
        interrupts += 1;
      },
    );
    const parts = input.subarray(0, 2_000).toString('latin1').split('\xff').slice(0, 20);
    let alone = 0;
    let interrupting = 0;
    for (const part of parts) {
      if (part !== '') stdin.emit('data', Buffer.from(part, 'latin1'));
      if (part.length === 1 && '\x1b dhr'.includes(part)) alone += 1;
      if (part.includes('\x03')) interrupting += 1;
      await clock.advance(ALONE_MS + 10);
    }
    watched.close();
    hold(pressed.length === alone, () => `${pressed.length} keys of ${alone}: ${pressed}`);
    hold(interrupts === interrupting, () => `${interrupts} interruptions of ${interrupting}`);
    hold(stdin.eventNames().length === 0, () => 'somebody listens on');
    return pressed.length > 0;
  },
});

const PROCESSED = JSON.stringify({
  error: false,
  errorReason: '000',
  toastMessage: '',
  object: { reftransactionid: 'r' },
});
const answer = (head: string, body: string) =>
  Buffer.from(`HTTP/1.1 ${head}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
const REPLIES = [
  ...[
    answer('200 OK', PROCESSED),
    answer('400 Bad Request', '{}'),
    answer('301 Moved\r\nlocation: http://169.254.169.254/', ''),
  ],
  answer('200 OK\r\ntransfer-encoding: chunked', 'x'),
  Buffer.from('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{"a":\r\n2\r\n1}\r\n0\r\nx: y\r\n\r\n'),
  Buffer.from(
    'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n',
  ),
  Buffer.from('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nabc'),
  Buffer.from(`HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\nset-cookie: a=b\r\n\r\n${'x'.repeat(2_000)}`),
  Buffer.from(JSON.stringify({ access_token: 'a\r\nb', token_type: 'Bearer', expires_in: 1 })),
  answer('200 OK', JSON.stringify({ access_token: 'tok', token_type: 'Bearer', expires_in: 1 })),
];

/** Whatever a partner answers, an attempt ends, and says how. */
const callbacks: Target['open'] = async (world) => {
  let next = Buffer.alloc(0);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    socket.once('data', () => {
      if (next.length % 5 === 0) socket.write(next);
      else socket.end(next);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  world.onEnd(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/`;
  const post = createPost({ ownPorts: new Set(), lookup: () => lookup });
  const token = { kind: 'token', url, username: 'u', password: 'p' } as const;
  let count = 0;
  return {
    feed: async (input) => {
      next = Buffer.from(input);
      count += 1;
      const auth = count % 3 === 0 ? token : ({ kind: 'none' } as const);
      const callback = { id: '00000000-0000-4000-8000-000000000001', url, body: '{}', tries: 0, byHand: false };
      const to = { ...callback, auth, signingSecret: undefined, success: 'any2xx' as const };
      const attempt = await attemptCallback(to, { clock: hurried, post }, new AbortController().signal);
      const { result, status, answer: kept, error, warning } = attempt;
      hold((status === null) !== (error === null), () => `status ${status} and error ${error}`);
      hold(result === 'retry' || (status !== null && status >= 200), () => `${result} with status ${status}`);
      hold((kept ?? '').length <= 4_096 && !kept?.includes('\0'), () => 'too much is kept');
      if (error !== null) holdNamed(error);
      if (warning !== null) hold(warning.length < 70_000, () => 'a warning without end');
      return result === 'delivered';
    },
  };
};

const EDGES = [
  '17 1\n17 0\n',
  '27 1\n',
  '22 2\n17 1\n27 1\n',
  '17 1',
  '0017 1\n',
  '-1 1\n',
  '17  1\n',
  'x\n',
  '17 1\n'.repeat(600),
].map((it) => Buffer.from(it));
const LINES = { dismiss: 17, repeat: 27, history: 22 };

/** A gpiomon that prints anything and ends: only a line of a button's own presses it, and the end has words. */
const buttons: Target['open'] = async (world) => {
  const folder = await world.folder();
  const command = join(folder, 'gpiomon');
  const [version, edges] = [join(folder, 'version'), join(folder, 'edges')];
  writeFileSync(command, `#!/bin/sh\n[ "$1" = --version ] && exec cat ${version}\nexec cat ${edges}\n`);
  chmodSync(command, 0o755);
  return {
    feed: async (input) => {
      const spoilsVersion = (input[0] ?? 0) % 8 === 7;
      writeFileSync(version, spoilsVersion ? input : 'gpiomon (libgpiod) v1.6.3\n');
      writeFileSync(edges, input);
      const pressed: string[] = [];
      const io = { clock: systemClock, log: listeningLog(systemClock).log };
      const options = { ...{ chip: 'gpiochip0', lines: LINES, activeLow: true, debounceMs: 1, command } };
      const watched = watchButtons(options, io, (key) => void pressed.push(key));
      for (let left = 2_000; left > 0 && watched.status().ok; left -= 1) await systemClock.sleep(2);
      const { reason } = watched.status();
      await watched.close();
      hold(reason !== null, () => 'the end of gpiomon has no reason');
      holdNamed(reason ?? '');
      const could = input.toString('latin1').match(/^(17|27|22|0017|0027|0022|017|027|022) 1$/gm)?.length ?? 0;
      hold(pressed.length <= could, () => `${pressed.length} presses of ${could} edges`);
      return pressed.length > 0;
    },
  };
};

const ANSWERS = [
  '{"ok":true}\n',
  '{"error":"no pins"}\n',
  '{"ok":false}\n',
  'Segmentation fault\n',
  '{"ok":true}',
  '[]\n',
  '\n\n\n',
].map((it) => Buffer.from(it));
const SIDE = 64;

/** An addon that writes what its picture says into the pipe of answers, as one that logs there would. */
const ADDON = `
import { writeSync } from 'node:fs';
export class LedMatrix {
  static defaultMatrixOptions() { return {}; }
  static defaultRuntimeOptions() { return {}; }
  width() { return ${SIDE}; }
  height() { return ${SIDE}; }
  clear() {}
  sync() {}
  drawBuffer(bytes) { const length = bytes.readUInt16LE(0); if (length > 0) writeSync(3, bytes.subarray(2, 2 + length)); }
}
`;
const SCENE = { kind: 'starting', version: '1' } as const;

/** A child of the display answers anything: a draw is done or fails by name, and the next display works again. */
const ledChild: Target['open'] = async (world) => {
  const root = await world.folder();
  const fake = new FakeLedMatrix(root);
  writeFileSync(fake.options.addon, ADDON);
  const options = {
    ...ledMatrix.example,
    ...fake.options,
    rows: SIDE,
    cols: SIDE,
    chainLength: 1,
    hardwareMapping: 'regular' as const,
  };
  const io = {
    ...{
      clock: hurriedAnswers,
      log: listeningLog(systemClock).log,
      terminal: undefined,
      terminalInput: undefined,
      cacheDir: root,
    },
    openSerial: () => Promise.reject(new Error('no port')),
    requestDraw: () => undefined,
  };
  const open = () => ledMatrix.open(options, io, new AbortController().signal);
  let display: Display | undefined;
  world.onEnd(() => display?.close());
  const frameOf = (said: Buffer) => {
    const rgb = Buffer.alloc(SIDE * SIDE * 3);
    rgb.writeUInt16LE(said.copy(rgb, 2), 0);
    const data = new Uint8Array(SIDE * SIDE * 4).fill(255);
    for (let at = 0; at < SIDE * SIDE; at += 1) data.set(rgb.subarray(at * 3, at * 3 + 3), at * 4);
    return { kind: 'pixels', width: SIDE, height: SIDE, data } as const;
  };
  return {
    feed: async (input) => {
      display ??= await open();
      try {
        await display.draw(frameOf(input), SCENE);
        return true;
      } catch (error) {
        await display.close();
        display = undefined;
        if (!(error instanceof PayboxError)) throw error;
        holdNamed(error.message);
        return false;
      }
    },
  };
};

/** A child needs its time to start; only its answers are not waited for so long. */
const hurriedAnswers: Clock = {
  ...systemClock,
  sleep: (ms, signal) => systemClock.sleep(ms === 3_000 ? 1_000 : ms, signal),
};

const keysOf = (chance: Seeded) => {
  const parts = Array.from({ length: 1 + chance.below(4) }, () => mutated(KEYS, chance).subarray(0, 64));
  return Buffer.concat(parts.flatMap((part) => [part, Buffer.of(0xff)]));
};

export const LOCAL: Target[] = [
  { name: 'keyboard', inputs: 600, make: keysOf, open: keyboard },
  { name: 'answer to a callback', inputs: 800, make: (chance) => mutated(REPLIES, chance), open: callbacks },
  { name: 'gpiomon', inputs: 80, make: (chance) => mutated(EDGES, chance), open: buttons },
  { name: 'child of a display', inputs: 60, make: (chance) => mutated(ANSWERS, chance), open: ledChild },
];
