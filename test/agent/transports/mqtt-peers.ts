import { randomUUID } from 'node:crypto';
import { Writable } from 'node:stream';
import { onTestFinished } from 'vitest';
import type { InboundMessage } from '../../../src/device/agent/contract.ts';
import { mqttTransport } from '../../../src/device/agent/transports/mqtt.ts';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import { createLogger } from '../../../src/lib/log.ts';
import type { UpMessage } from '../../../src/protocol/messages.ts';
import { down, IDENTITY } from '../../support/fake-gateway.ts';
import { NO_BOX, NO_SEAL } from '../../support/no-seal.ts';

export const RUN = '3b241101-e2bb-4255-8caf-4136c566a962';
export const OTHER_RUN = '9b241101-e2bb-4255-8caf-4136c566a962';

/** Opens a connection by one of the two clients: the library, and the light one of fleets. */
export type Open = typeof mqttTransport.open;

export function boxOver(
  open: Open,
  url: string,
  change: { secret?: string; connectTimeoutMs?: number; keepaliveSeconds?: number; clock?: Clock } = {},
) {
  const lines: string[] = [];
  const out = new Writable({
    write: (chunk, _encoding, done) => {
      lines.push(String(chunk));
      done();
    },
  });
  const sessionId = randomUUID();
  const abort = new AbortController();
  const identity = { ...IDENTITY, secret: change.secret ?? IDENTITY.secret };
  const log = createLogger(out, systemClock, 'json');
  const io = {
    clock: change.clock ?? systemClock,
    log,
    identity,
    sessionId,
    seal: NO_SEAL,
    shard: 0,
    heard: () => undefined,
    noShard: () => false,
    box: NO_BOX,
  };
  const { connectTimeoutMs = 20_000, keepaliveSeconds } = change;
  const options = mqttTransport.options.parse({ url, connectTimeoutMs, keepaliveSeconds });
  const opening = open(options, io, abort.signal);
  opening.catch(() => undefined);
  onTestFinished(async () => {
    await (await opening.catch(() => undefined))?.close();
  });
  return { opening, abort, sessionId, lines, events: () => lines.map((line) => JSON.parse(line).event) };
}

/** What a session gives until it ends, and why it ended. */
export async function drain(
  incoming: AsyncIterable<InboundMessage>,
): Promise<{ messages: InboundMessage[]; reason: string }> {
  const messages: InboundMessage[] = [];
  try {
    for await (const message of incoming) messages.push(message);
    return { messages, reason: '' };
  } catch (error) {
    return { messages, reason: String(error) };
  }
}

export const SESSION = randomUUID();
export const shown = (): UpMessage => {
  return { v: 1, id: randomUUID(), sentAtMs: 1, sessionId: SESSION, type: 'shown', pushId: randomUUID() };
};
export const withdraw = () => down({ type: 'withdraw', pushId: randomUUID(), why: 'timeout' });
