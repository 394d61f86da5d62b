import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { INCOMING_MAX, MessageQueue } from '../../../src/device/agent/transports/message-queue.ts';
import { encode } from '../../../src/protocol/codec.ts';
import type { DownMessage } from '../../../src/protocol/messages.ts';
import { SEAL_REFUSALS } from '../../../src/protocol/seal.ts';
import { DOWN } from '../../protocol/examples.ts';
import { down } from '../../support/fake-gateway.ts';
import { keptLog } from '../../support/kept-log.ts';
import { NO_SEAL } from '../../support/transport-io.ts';

const [SESSION, OTHER_SESSION] = [randomUUID(), randomUUID()];

function show(sessionId: string = SESSION, pushId: string = randomUUID()) {
  const holder = { bankAccount: '0123456789', bankCode: 'MB', userBankName: 'NGUYEN VAN A' };
  const order = { pushId, orderId: 'DH001', amount: 50_000, content: 'DH001', qrCode: 'qr', ...holder };
  return down({ type: 'show', ...order, expiresAtMs: 300_000, expiresInMs: 300_000, sessionMs: 0 }, sessionId);
}
const withdraw = () => down({ type: 'withdraw', pushId: randomUUID(), why: 'timeout' }, SESSION);
const overtaken = (message: DownMessage) => {
  if (message.type !== 'show') throw new Error('not a push');
  return { type: 'overtaken', sessionId: message.sessionId, pushId: message.pushId };
};

function incomingOf(...messages: DownMessage[]) {
  return incomingWith(NO_SEAL, ...messages);
}

function incomingWith(seal: ConstructorParameters<typeof MessageQueue>[0]['seal'], ...messages: DownMessage[]) {
  const { log, lines } = keptLog();
  const incoming = new MessageQueue({ log, seal, heard: () => undefined });
  const take = (message: DownMessage) => incoming.take(encode(message));
  for (const message of messages) take(message);
  /** What is read while the connection is open. */
  const rest = async () => {
    const reading = Array.fromAsync(incoming);
    await new Promise((resolve) => setImmediate(resolve));
    incoming.close();
    return reading;
  };
  return { incoming, take, events: () => lines.map(({ event }) => event), rest };
}

const many = <T>(count: number, make: () => T) => Array.from({ length: count }, make);

describe('what waits for the box', () => {
  it('SND-8 the queue of a box holds the newest push; of an older one only that it was overtaken, in its place', async () => {
    const [first, between, second, third] = [show(), withdraw(), show(), show()];
    const { rest } = incomingOf(first, between, second, third);
    expect(await rest()).toEqual([overtaken(first), between, overtaken(second), third]);
  });

  it('SND-5 the queue of a box drops a push of a connection that has ended: its gateway has answered that the box is away', async () => {
    const [push, other] = [show(), withdraw()];
    const { incoming } = incomingOf(push, other);
    incoming.close();
    expect(await Array.fromAsync(incoming)).toEqual([other]);
  });

  it('the queue of a box keeps a push that is sent twice as it is', async () => {
    const push = show();
    expect(await incomingOf(push, push).rest()).toEqual([push, push]);
  });

  it('MSG-4 a push in the queue is not overtaken by a push to another agent', async () => {
    const [own, foreign] = [show(), show(OTHER_SESSION)];
    expect(await incomingOf(own, foreign).rest()).toEqual([own, foreign]);
  });

  it('SND-4 a full queue drops the oldest push, and logs it once until it was empty', async () => {
    const pushes = many(INCOMING_MAX + 10, () => show());
    const { incoming, take, events } = incomingOf(...pushes);
    take(withdraw());
    expect(incoming.ended).toBe(false);
    expect(events()).toEqual(['messages-dropped']);
    const messages = incoming[Symbol.asyncIterator]();
    for (const push of pushes.slice(11, -1)) expect((await messages.next()).value).toEqual(overtaken(push));
    expect((await messages.next()).value).toEqual(pushes.at(-1));
    expect((await messages.next()).value).toMatchObject({ type: 'withdraw' });
    for (const push of pushes) take(push);
    expect(events()).toEqual(['messages-dropped', 'messages-dropped']);
  });

  it('SND-4 a queue full of more important messages drops a push', async () => {
    const { incoming, take, rest } = incomingOf(...many(INCOMING_MAX, withdraw));
    take(show());
    expect(incoming.ended).toBe(false);
    expect(await rest()).toHaveLength(INCOMING_MAX);
  });

  it('MSG-6 MSG-7 MSG-9 a full queue drops what its gateway repeats, and ends the connection only for what is sent once', async () => {
    const { incoming, take, events } = incomingOf(...many(INCOMING_MAX, withdraw));
    const { payment, ack } = DOWN;
    for (const again of [withdraw(), payment, ack]) take({ ...again, sessionId: SESSION });
    expect(incoming.ended).toBe(false);
    expect(events()).toEqual(['messages-dropped']);
    take(down({ type: 'refused', code: 'SUPERSEDED', reason: '' }, SESSION));
    expect(incoming.ended).toBe(true);
    await expect(Array.fromAsync(incoming)).rejects.toThrow(`more than ${INCOMING_MAX} messages waited`);
  });

  it.each(SEAL_REFUSALS)(
    'SIG-3 SIG-4 the queue drops a message refused as %s, and only one that came too late ends the connection',
    async (code) => {
      const { incoming, take, events, rest } = incomingWith({ open: () => ({ ok: false, code, reason: 'a test' }) });
      take(withdraw());
      expect(events()).toEqual(['message-refused']);
      expect(incoming.ended).toBe(code === 'MESSAGE_EXPIRED');
      if (incoming.ended) await expect(Array.fromAsync(incoming)).rejects.toThrow('too late');
      else expect(await rest()).toEqual([]);
    },
  );
});
