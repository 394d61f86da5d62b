import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/log.ts';
import { serviceManager } from '../../src/lib/systemd.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { notifySocket, notifySocketNeeds } from '../support/notify-socket.ts';
import { PROGRAMS, without } from '../support/programs.ts';

const PID = 4711;
const program = without(PROGRAMS.systemdNotify);
const needs = { missing: program.missing || notifySocketNeeds.missing, note: program.note + notifySocketNeeds.note };

function logged() {
  const out = new PassThrough();
  const lines: string[] = [];
  out.setEncoding('utf8').on('data', (text: string) => lines.push(...text.trimEnd().split('\n')));
  return { log: createLogger(out, systemClock, 'text'), lines };
}

const managerOf = (env: NodeJS.ProcessEnv, log = logged().log) => {
  const manager = serviceManager({ PATH: process.env.PATH, ...env }, PID, log);
  if (manager === undefined) throw new Error('no service manager');
  return manager;
};

describe('a service manager', () => {
  it('is not there without NOTIFY_SOCKET', () => {
    const { log } = logged();
    expect(serviceManager({ WATCHDOG_USEC: '1000000' }, PID, log)).toBeUndefined();
    expect(serviceManager({ NOTIFY_SOCKET: '' }, PID, log)).toBeUndefined();
  });

  it.each<[string, NodeJS.ProcessEnv, number | undefined]>([
    ['as it says', { WATCHDOG_USEC: '30000000', WATCHDOG_PID: String(PID) }, 30_000],
    ['also when it names no process', { WATCHDOG_USEC: '500000' }, 500],
    ['not when it watches another process', { WATCHDOG_USEC: '30000000', WATCHDOG_PID: '1' }, undefined],
    ['not when it does not say so', {}, undefined],
    ['not for no time at all', { WATCHDOG_USEC: '0' }, undefined],
    ['not for what is no number', { WATCHDOG_USEC: 'soon' }, undefined],
  ])('watches %s', (_, env, expected) => {
    expect(managerOf({ NOTIFY_SOCKET: '/run/nobody', ...env }).watchdogMs).toBe(expected);
  });

  it.skipIf(needs.missing)(`is told by systemd-notify at a path${needs.note}`, async () => {
    const path = join(await temporaryFolder(), 'notify');
    const socket = await notifySocket(path);
    managerOf({ NOTIFY_SOCKET: path }).notify({ READY: '1', STATUS: 'idle; online' });
    await socket.until('READY=1');
    await socket.until('STATUS=idle; online');
  });

  it.skipIf(needs.missing)(`is told by systemd-notify at an abstract address${needs.note}`, async () => {
    const address = `@paybox-test-${randomUUID()}`;
    const socket = await notifySocket(address);
    managerOf({ NOTIFY_SOCKET: address }).notify({ STOPPING: '1' });
    await socket.until('STOPPING=1');
  });

  it.skipIf(needs.missing)(
    `gets the first and the newest of 500 statuses, and every other notification${needs.note}`,
    async () => {
      const path = join(await temporaryFolder(), 'notify');
      const socket = await notifySocket(path);
      const manager = managerOf({ NOTIFY_SOCKET: path });
      for (let n = 1; n <= 500; n += 1) manager.notify({ STATUS: `status ${n}` });
      manager.notify({ WATCHDOG: '1' });
      await socket.until('WATCHDOG=1');
      const received = socket.received().filter((line) => line.startsWith('STATUS'));
      expect(received).toEqual(['STATUS=status 1', 'STATUS=status 500']);
    },
  );

  it.skipIf(needs.missing)(`cannot be told more than one line by a status${needs.note}`, async () => {
    const path = join(await temporaryFolder(), 'notify');
    const socket = await notifySocket(path);
    managerOf({ NOTIFY_SOCKET: path }).notify({ STATUS: `a\nREADY=1\r\n${'x'.repeat(10_000)}` });
    await socket.until(/^STATUS=a READY=1 x{100,300}$/);
    expect(socket.received()).toHaveLength(1);
  });

  it.each<[string, NodeJS.ProcessEnv]>([
    ['does not listen', {}],
    ['cannot be told for want of systemd-notify', { PATH: '/nowhere' }],
    ['handed over a file that is not open', { LISTEN_PID: String(PID), LISTEN_FDNAMES: `${':'.repeat(900)}notify` }],
  ])('that %s is named in the log', async (_, env) => {
    const { log, lines } = logged();
    managerOf({ NOTIFY_SOCKET: '/nowhere/notify', ...env }, log).notify({ READY: '1' });
    await eventually('a line in the log', () => lines.length > 0);
    expect(lines).toEqual([expect.stringContaining('notify-failed')]);
  });

  it('a failing service manager is logged once, and notified at every attempt', async () => {
    const folder = await temporaryFolder();
    const calls = join(folder, 'calls');
    await writeFile(join(folder, 'systemd-notify'), `#!/bin/sh\necho "$*" >> '${calls}'\nexit 1\n`, { mode: 0o755 });
    const { log, lines } = logged();
    const manager = managerOf({ NOTIFY_SOCKET: '/nowhere/notify', PATH: folder }, log);
    for (let n = 1; n <= 4; n += 1) {
      manager.notify({ STATUS: `${n}` });
      await eventually(`call ${n}`, async () => (await readFile(calls, 'utf8').catch(() => '')).includes(`=${n}\n`));
    }
    expect(lines).toEqual([expect.stringContaining('notify-failed')]);
  });
});
