import { connect, createServer, type Socket } from 'node:net';
import { generate, type Packet, parser } from 'mqtt-packet';

/** Packets of the tap have ids that brokers come to last. */
const OWN_IDS_FROM = 60_000;

/** Between a box and its broker: sees which payments the box has acknowledged, cuts, and says the last one again. */
export interface Tap {
  readonly port: number;
  /** Notices of payments that the box has acknowledged, by their amounts in đồng. */
  readonly delivered: ReadonlySet<number>;
  /** Notices of payments that were sent to the box, acknowledged or not. */
  readonly sent: ReadonlySet<number>;
  /** Settles at the next notice of a payment that is sent to the box, or that the box acknowledges. */
  next(what: 'sent' | 'acknowledged'): Promise<void>;
  /** Ends every connection at once. */
  cut(): void;
  /** Sends the last notice of a payment again, as a service would that says it twice. */
  repeat(): void;
  close(): Promise<void>;
}

/** Opens a tap for boxes of the public dialect before a broker on this machine. */
export async function openTap(brokerPort: number): Promise<Tap> {
  const delivered = new Set<number>();
  const sent = new Set<number>();
  const happened = { sent: Promise.withResolvers<void>(), acknowledged: Promise.withResolvers<void>() };
  const boxes = new Set<Socket>();
  let last: (Packet & { cmd: 'publish' }) | undefined;
  let ownId = OWN_IDS_FROM;
  const server = createServer((box) => {
    const broker = connect(brokerPort, '127.0.0.1');
    const waiting = new Map<number, number>();
    boxes.add(box);
    const end = () => {
      boxes.delete(box);
      box.destroy();
      broker.destroy();
    };
    for (const socket of [box, broker]) socket.on('error', end).on('close', end).setNoDelay(true);
    const up = parser();
    const down = parser();
    up.on('packet', (packet: Packet) => {
      if (packet.cmd === 'puback') {
        const amount = waiting.get(packet.messageId ?? 0);
        if (amount !== undefined) {
          delivered.add(amount);
          happened.acknowledged.resolve();
        }
        if ((packet.messageId ?? 0) >= OWN_IDS_FROM) return;
      }
      broker.write(generate(packet));
    });
    down.on('packet', (packet: Packet) => {
      const amount = packet.cmd === 'publish' ? amountOf(String(packet.payload)) : undefined;
      if (packet.cmd === 'publish' && amount !== undefined) {
        waiting.set(packet.messageId ?? 0, amount);
        sent.add(amount);
        last = packet;
        happened.sent.resolve();
      }
      box.write(generate(packet));
    });
    for (const parsing of [up, down]) parsing.on('error', end);
    box.on('data', (bytes: Buffer) => up.parse(bytes));
    broker.on('data', (bytes: Buffer) => down.parse(bytes));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const cut = () => {
    for (const box of boxes) box.destroy();
  };
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    delivered,
    sent,
    next: (what) => {
      happened[what] = Promise.withResolvers();
      return happened[what].promise;
    },
    cut,
    repeat: () => {
      if (last === undefined) return;
      ownId = ownId >= 65_535 ? OWN_IDS_FROM : ownId + 1;
      for (const box of boxes) box.write(generate({ ...last, messageId: ownId }));
    },
    close: () => {
      cut();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** The amount in a notice of a payment. */
function amountOf(payload: string): number | undefined {
  if (!payload.includes('"N05"')) return undefined;
  const amount = /"amount":"([\d,]+)"/.exec(payload)?.[1];
  return amount === undefined ? undefined : Number(amount.replaceAll(',', ''));
}
