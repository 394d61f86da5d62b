import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { startAgent } from '../../src/device/agent/agent.ts';
import type { Connection } from '../../src/device/agent/contract.ts';
import { MessageQueue } from '../../src/device/agent/transports/message-queue.ts';
import type { AgentSetup } from '../../src/device/agent/world.ts';
import { systemClock } from '../../src/lib/clock.ts';
import type { Logger } from '../../src/lib/log.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { encode } from '../../src/protocol/codec.ts';
import type { DownBody, UpMessage } from '../../src/protocol/messages.ts';
import { LINK, paymentOf, pushOf } from '../box/samples.ts';
import { down } from '../support/fake-gateway.ts';
import { quietLog } from '../support/kept-log.ts';
import { keptBytes } from '../support/memory.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { NO_SEAL } from '../support/transport-io.ts';

const IDENTITY = { terminalCode: 'VVB000001', serialNumber: 'VVB900001', secret: 'Sample-box-secret-known-to-all' };
const EVENTS = 5_000;
/** Every so many pushes there is a payment. */
const PUSHES_PER_PAYMENT = 10;
const KEPT_BYTES_MAX = 1_500_000;

/** Its messages arrive, and what the box says after the hello arrives nowhere and is never refused either. */
class Stalled implements Connection {
  readonly incoming: MessageQueue;
  #sessionId = '';

  constructor(log: Logger) {
    this.incoming = new MessageQueue({ log, seal: NO_SEAL, heard: () => undefined });
  }

  async send(message: UpMessage): Promise<void> {
    this.#sessionId = message.sessionId;
    if (message.type === 'hello') this.tell({ type: 'welcome', link: LINK, openPushIds: [] });
    else await this.incoming.whileOpen(new Promise<void>(() => undefined));
  }

  tell(body: DownBody): void {
    this.incoming.take(encode({ ...down(body), sessionId: this.#sessionId }));
  }

  async close(): Promise<void> {
    this.incoming.close();
  }
}

it('AGT-2 AGT-5 an agent keeps its memory and runs while display, disk and link fail at once', async () => {
  const file = join(await temporaryFolder(), 'file');
  await writeFile(file, 'no folder can be here');
  const log = quietLog();
  const sessions: Stalled[] = [];
  const open = async () => {
    const session = new Stalled(log);
    sessions.push(session);
    return session;
  };
  const setup: AgentSetup = {
    identity: IDENTITY,
    version: '0.0.0',
    displays: [{ driver: 'dead', open: () => Promise.reject(new Error('no panel')) }],
    link: { transport: 'memory', gateway: 'memory:', open },
    http: { host: '127.0.0.1', port: 0 },
    parts: {},
    dataDir: join(file, 'box'),
    paidHoldMs: 10_000,
    endedHoldMs: 5_000,
    onStop: 'blank',
  };
  const io = { clock: systemClock, random: systemRandom, log, terminal: undefined, terminalInput: undefined };
  const agent = await startAgent(setup, io);
  onTestFinished(() => agent.close());
  await eventually('registered', () => agent.box.status().online);
  const flood = async (first: number) => {
    for (let n = first; n < first + EVENTS; n += 1) {
      const isPayment = n % PUSHES_PER_PAYMENT === 0;
      sessions.at(-1)?.tell(isPayment ? paymentOf(n) : pushOf(n));
      if (n % 5 === 0) await turn();
    }
  };
  // What is remembered on purpose is full after the first.
  await flood(0);
  const beforeBytes = keptBytes();
  await flood(EVENTS);
  expect(keptBytes() - beforeBytes).toBeLessThan(KEPT_BYTES_MAX);
  const { state, display, journal, lastPayment } = agent.box.status();
  expect(display).toMatchObject({ ok: false, reason: 'no panel' });
  expect(journal.ok).toBe(false);
  expect(lastPayment).not.toBeNull();
  expect(state).not.toBe('showing');
});
