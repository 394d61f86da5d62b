import { onTestFinished } from 'vitest';
import { type Agent, startAgent } from '../../src/device/agent/agent.ts';
import type { Connection, TransportIo } from '../../src/device/agent/contract.ts';
import type { AgentSetup } from '../../src/device/agent/world.ts';
import { DISPLAY_DRIVERS } from '../../src/device/display/registry.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { BoundedQueue } from '../../src/lib/queue.ts';
import { systemRandom } from '../../src/lib/random.ts';
import {
  type DownBody,
  type DownMessage,
  downMessage,
  type LinkedAccount,
  type UpMessage,
  upMessage,
} from '../../src/protocol/messages.ts';
import { LINK } from '../box/samples.ts';
import { quietLog } from '../support/kept-log.ts';
import { eventually, temporaryFolder } from '../support/net.ts';

const IDENTITY = { terminalCode: 'VVB000001', serialNumber: 'VVB900001', secret: 'Sample-box-secret-known-to-all' };

/** A gateway at the other end of a session in memory: it welcomes the box and keeps what it says. */
export class Gateway implements Connection {
  readonly incoming = new BoundedQueue<DownMessage>(100, 'reject');
  readonly said: UpMessage[] = [];
  heard: TransportIo['heard'] | undefined;
  readonly #link: LinkedAccount;
  #sessionId = '';

  constructor(link: LinkedAccount) {
    this.#link = link;
  }

  async send(message: UpMessage): Promise<void> {
    if (message.type === 'alive') {
      this.heard?.(message.id);
      return;
    }
    this.said.push(upMessage.parse(message));
    this.#sessionId = message.sessionId;
    if (message.type === 'hello') this.tell({ type: 'welcome', link: this.#link, openPushIds: [] });
  }

  async close(): Promise<void> {
    this.incoming.close();
  }

  tell(body: DownBody): void {
    const head = { v: 1, id: systemRandom.uuid(), sentAtMs: systemClock.wallMs() };
    this.incoming.offer(downMessage.parse({ ...head, ...body, sessionId: this.#sessionId }));
  }

  types(): string[] {
    return this.said.map((message) => (message.type === 'rejected' ? message.code : message.type));
  }
}

/** A display of the house, configured. */
export function display(driver: string, options: object) {
  const registered = DISPLAY_DRIVERS.get(driver);
  if (registered === undefined) throw new Error(`no driver ${driver}`);
  return { driver, open: registered.configure(options).open };
}

/** A box that runs, registered at a gateway of its own. */
export async function boxWith(
  change: Partial<AgentSetup> & Pick<AgentSetup, 'displays'>,
  { account = LINK, address = 'memory:' }: { account?: LinkedAccount; address?: string } = {},
): Promise<{ agent: Agent; gateway: Gateway }> {
  const gateway = new Gateway(account);
  const setup: AgentSetup = {
    identity: IDENTITY,
    version: '0.0.0',
    link: { transport: 'memory', gateway: address, open: async ({ heard }) => Object.assign(gateway, { heard }) },
    http: { host: '127.0.0.1', port: 0 },
    parts: {},
    dataDir: await temporaryFolder(),
    paidHoldMs: 10_000,
    endedHoldMs: 5_000,
    onStop: 'blank',
    ...change,
  };
  const log = quietLog();
  const agent = await startAgent(setup, {
    clock: systemClock,
    random: systemRandom,
    log,
    terminal: undefined,
    terminalInput: undefined,
  });
  onTestFinished(() => agent.close());
  await eventually('registered', () => agent.box.status().online);
  return { agent, gateway };
}
