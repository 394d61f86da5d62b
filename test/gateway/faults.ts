import { onTestFinished } from 'vitest';
import { startAgent } from '../../src/device/agent/agent.ts';
import { parseAgentConfig } from '../../src/device/agent/config.ts';
import { setupOf } from '../../src/device/agent/setup.ts';
import { parseGatewayConfig } from '../../src/gateway/config/config.ts';
import { withCallbackFaults } from '../../src/gateway/faults/callback-faults.ts';
import { Faults } from '../../src/gateway/faults/faults.ts';
import { LinkFaults } from '../../src/gateway/faults/link-faults.ts';
import { LatePayments } from '../../src/gateway/faults/payment-faults.ts';
import type { MakeAttempt } from '../../src/gateway/money/callbacks/attempt.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import type { ActiveFaultView, FaultOrder } from '../../src/protocol/faults.ts';
import type { DownMessage } from '../../src/protocol/messages.ts';
import { keptLog, type LogLine } from '../support/kept-log.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { directoryOf } from './directory.ts';
import {
  ACCOUNT,
  BOX1,
  BOXES,
  OTHER_ACCOUNT,
  type PartnerCall,
  partnerServer,
  type TestGateway,
  type TestOptions,
  testGateway,
} from './harness.ts';
import { storedOf, worldOf } from './stage-records.ts';

export type Transport = 'mqtt' | 'http';

export interface Status {
  state: string;
  online: boolean;
  display: { ok: boolean };
  fault: object | null;
  order: { orderId: string; amount: number; qrCode: string } | null;
  lastPayment: { transactionId: string; orderId: string; amount: number; content: string } | null;
}

/** A real agent, in this process. */
export interface RealBox {
  origin: string;
  log: LogLine[];
  /** The lines in its log of an event. */
  logged(event: string): LogLine[];
  status(): Promise<Status>;
  /** How many payments it has announced. */
  announcements(): Promise<number>;
  close(): Promise<void>;
}

export async function startRealBox(
  gateway: Pick<TestGateway, 'origin' | 'mqttUrl'>,
  transport: Transport,
  { identity = BOX1, link = {}, faults = false }: { identity?: typeof BOX1; link?: object; faults?: boolean } = {},
): Promise<RealBox> {
  const { terminalCode, serialNumber, secret } = identity;
  const config = parseAgentConfig(
    {
      box: { terminalCode, serialNumber, secret },
      link: { transport, url: transport === 'mqtt' ? gateway.mqttUrl : gateway.origin, ...link },
      displays: [{ driver: 'browser' }],
      http: { port: 0 },
      dataDir: await temporaryFolder(),
      paidHoldSeconds: 1,
      faults,
    },
    'test',
  );
  const { log, lines } = keptLog();
  const agent = await startAgent(setupOf(config), {
    clock: systemClock,
    random: systemRandom,
    log,
    terminal: undefined,
    terminalInput: undefined,
  });
  onTestFinished(() => agent.close());
  const status = async () => (await (await fetch(`${agent.origin}/status`)).json()) as Status;
  return {
    origin: agent.origin,
    log: lines,
    logged: (event) => lines.filter((it) => it.event === event),
    status,
    announcements: async () => {
      const text = await (await fetch(`${agent.origin}/metrics`)).text();
      return Number(/^paybox_box_announcements_total (\d+)$/m.exec(text)?.[1]);
    },
    close: () => agent.close(),
  };
}

export interface Shop {
  gateway: TestGateway;
  box: RealBox;
  partner: { calls: PartnerCall[] };
  /** Orders a fault; the fault as it stands. */
  inject(order: FaultOrder): Promise<ActiveFaultView>;
  standing(): Promise<ActiveFaultView[]>;
  /** Generates an order and sends its QR to the box; the message of the answer. */
  sell(name: string): Promise<unknown>;
  /** The payer pays; the transaction id. */
  pay(name: string): Promise<string>;
  /** Has a new order shown and paid: told once to the box and once to the partner. */
  expectNormal(name?: string): Promise<void>;
  /** How often a fault has happened, as it is logged. */
  happened(fault: string): number;
}

/** A gateway, a real box and a real partner; callbacks are retried at once. */
export async function openShop(
  transport: Transport,
  {
    replies = [],
    link = {},
    ...options
  }: TestOptions & { replies?: Parameters<typeof partnerServer>; link?: object } = {},
): Promise<Shop> {
  const partner = await partnerServer(...replies);
  const config = { callbackRetryWaitsMs: [20, 20, 20, 20], ...options.config };
  const gateway = await testGateway({ callback: { url: partner.url }, ...options, config });
  const box = await startRealBox(gateway, transport, { link });
  const standing = async () => (await faults(gateway)).standing;
  const shop: Shop = {
    gateway,
    box,
    partner,
    standing,
    inject: async (fault) => {
      const answer = await askFaults(gateway, '', 'POST', fault);
      if (answer.status !== 201) throw new Error(`refused: ${JSON.stringify(answer.body)}`);
      return answer.body as ActiveFaultView;
    },
    sell: async (name) => {
      const made = await gateway.generate({ orderId: name, content: name });
      if (made.status !== 200) return made.body.message;
      const sent = await gateway.sendQr({ orderId: name, content: name, qrCode: made.body.qrCode });
      return sent.body.message;
    },
    pay: async (name) => String((await gateway.testCallback({ content: name })).body.message),
    expectNormal: (name = 'NORMAL') => expectNormal(shop, name),
    happened: (fault) => gateway.logged('fault-triggered').filter((it) => it.fault === fault).length,
  };
  await eventually('the box online, with its screen', async () => {
    const { online, display } = await box.status();
    return online && display.ok;
  });
  return shop;
}

async function expectNormal(shop: Shop, name: string): Promise<void> {
  const isKnown = async () => (await shop.gateway.mock<{ online: boolean }>(`/boxes/${BOX1.terminalCode}`)).online;
  await eventually('the box online', async () => (await isKnown()) && (await shop.box.status()).online);
  const sold = await shop.sell(name);
  if (sold !== '') throw new Error(`a normal order is answered ${sold}`);
  const transactionId = await shop.pay(name);
  await expectTold(shop, transactionId);
}

/** The box has announced the payment and the partner has taken it; the box has announced no payment twice. */
export async function expectTold({ gateway, box }: Shop, transactionId: string): Promise<void> {
  const payments = () => gateway.mock<PaymentView[]>('/payments');
  const isAnnounced = ({ boxes }: PaymentView) => boxes.some((it) => it.reportedAt !== null);
  await eventually(`the payment ${transactionId} told`, async () => {
    const payment = (await payments()).find((it) => it.transactionId === transactionId);
    return payment?.callback?.status === 'delivered' && isAnnounced(payment);
  });
  // Another payment may have been announced and not be reported yet.
  await eventually('as many payments as announcements', async () => {
    const announced = (await payments()).filter(isAnnounced).length;
    return announced === (await box.announcements());
  });
}

/** Whether a box has reported the payment as announced. */
export async function isAnnounced({ gateway }: Pick<Shop, 'gateway'>, transactionId: string): Promise<boolean> {
  const payments = await gateway.mock<PaymentView[]>('/payments');
  const payment = payments.find((it) => it.transactionId === transactionId);
  return payment?.boxes.some((it) => it.reportedAt !== null) === true;
}

export interface PaymentView {
  transactionId: string;
  orderId: string;
  bankAccount: string;
  amount: number;
  content: string;
  boxes: { terminalCode: string; reportedAt: string | null }[];
  callback: { status: string; warning: string | null } | null;
}

export interface OfferedView {
  name: string;
  place: string;
  about: string;
  magic: string | null;
}

export const faults = (gateway: TestGateway) =>
  gateway.mock<{ faults: OfferedView[]; standing: ActiveFaultView[] }>('/faults');

export async function askFaults(
  gateway: Pick<TestGateway, 'origin'>,
  path: string,
  method: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: unknown }> {
  const answer = await fetch(`${gateway.origin}/_mock/faults${path}`, {
    method,
    ...(body === undefined
      ? { headers }
      : {
          headers: { 'content-type': 'application/json', ...headers },
          body: typeof body === 'string' ? body : JSON.stringify(body),
        }),
  });
  const text = await answer.text();
  return { status: answer.status, body: text === '' ? undefined : JSON.parse(text) };
}

/** The faults of a gateway alone, on a clock that stands still. */
export function faultsOnly() {
  const clock = new VirtualClock();
  const listed = { dataDir: 'x', accounts: [ACCOUNT, OTHER_ACCOUNT], boxes: BOXES };
  const config = parseGatewayConfig({ ...listed, confirmTimeoutMs: 5_000 }, 'test');
  const world = worldOf({ config, clock });
  const stored = storedOf({ directory: directoryOf(config) });
  const faults = new Faults(world);
  const nothing = async () => undefined;
  const edge = { faults, latePayments: new LatePayments(), resendCallback: nothing, payPush: nothing };
  const links = new LinkFaults(world, edge);
  const withFaults = (make: MakeAttempt) => withCallbackFaults(make, world, stored, edge);
  const socket = { transport: 'mqtt', problem: () => undefined, send: () => undefined, end: () => undefined } as const;
  /** A connection to box 1 with faults on it, and what is sent over it. */
  const connectBox = (send: (message: DownMessage) => void) =>
    links.connect(() => ({ transport: 'mqtt', send, end: () => undefined }))(BOX1.terminalCode, socket);
  return { clock, faults, links, withFaults, connectBox };
}
