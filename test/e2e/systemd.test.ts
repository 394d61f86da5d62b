import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { ACCOUNT, BOX1 } from '../gateway/harness.ts';
import { freePort, temporaryFolder } from '../support/net.ts';
import { notifySocket, notifySocketNeeds, OPEN_FILE } from '../support/notify-socket.ts';
import { run } from '../support/processes.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const CLI = join(ROOT, 'src/cli.js');
const WATCHDOG_MS = 400;

/** A program of ours as a unit of Type=notify starts it. */
async function service(command: 'agent' | 'gateway', config: object) {
  const folder = await temporaryFolder();
  const [path, file] = [join(folder, 'notify'), join(folder, 'config.yaml')];
  await writeFile(file, JSON.stringify(config));
  const socket = await notifySocket(path);
  const env = { NOTIFY_SOCKET: path, WATCHDOG_USEC: String(WATCHDOG_MS * 1000) };
  const running = run('perl', [...OPEN_FILE, process.execPath, CLI, command, '--config', file], env);
  return { socket, running };
}

const { account: _, ...identity } = BOX1;
const agentConfig = async () => ({
  box: identity,
  link: { transport: 'mqtt', url: 'mqtt://127.0.0.1:9' },
  displays: [{ driver: 'png', path: 'screen.png' }],
  http: { port: await freePort() },
  dataDir: 'box',
});

describe('a program under a service manager that hands its socket over', () => {
  it.skipIf(notifySocketNeeds.missing)(
    `an agent under a service manager reports ready, is watched as long as it runs, and reports stopping${notifySocketNeeds.note}`,
    async () => {
      const { socket, running } = await service('agent', await agentConfig());
      await socket.until('READY=1');
      await socket.until(/^STATUS=registering; offline: /);
      const feeds = () => socket.received().filter((line) => line === 'WATCHDOG=1').length;
      const more = async () => {
        const before = feeds();
        await expect.poll(feeds, { timeout: 60_000 }).toBeGreaterThan(before + 2);
      };
      await more();

      running.child.kill('SIGSTOP');
      // What it said before is read by then, also on a busy machine.
      await delay(WATCHDOG_MS * 5);
      const stalled = feeds();
      await delay(WATCHDOG_MS * 3);
      expect(feeds()).toBe(stalled);

      running.child.kill('SIGCONT');
      await more();
      expect(await running.stop()).toBe(0);
      await socket.until('STOPPING=1');
      expect(running.output()).not.toContain('notify-failed');
    },
  );

  it.skipIf(notifySocketNeeds.missing)(
    `a gateway under a service manager reports ready and stopping${notifySocketNeeds.note}`,
    async () => {
      const port = await freePort();
      const { socket, running } = await service('gateway', {
        http: { port },
        dataDir: 'gateway',
        accounts: [ACCOUNT],
        partners: [{ username: 'demo', password: 'secret', accounts: [ACCOUNT.bankAccount] }],
        boxes: [BOX1],
      });
      await socket.until('READY=1');
      await socket.until(new RegExp(`^STATUS=ready at http://127.0.0.1:${port}/`));
      expect(await running.stop()).toBe(0);
      await socket.until('STOPPING=1');
    },
  );
});
