import { describe, expect, it } from 'vitest';
import { INCOMING_MAX } from '../../../src/device/agent/transports/message-queue.ts';
import { type BoxTransport, TRANSPORTS } from '../../../src/device/agent/transports/registry.ts';
import { encode } from '../../../src/protocol/codec.ts';
import { lightOf } from '../../support/light-transport.ts';
import { freePort } from '../../support/net.ts';
import { boxOver, drain, PEERS, shown, withdraw } from './peers.ts';

/** Each transport, and once more by the connections of light boxes where it has them. */
const CASES = [...TRANSPORTS.values()].flatMap((transport): [string, BoxTransport][] => [
  [`the transport ${transport.name}`, transport],
  ...(transport.openLight === undefined
    ? []
    : [[`the light transport ${transport.name}`, lightOf(transport)] as [string, BoxTransport]]),
]);

it('each transport of the registry has a peer here to be tried with', () => {
  expect(Object.keys(PEERS).toSorted()).toEqual([...TRANSPORTS.keys()].toSorted());
});

describe.each(CASES)('%s', (_name, transport) => {
  const kind = PEERS[transport.name] ?? expect.fail('no peer');
  const box = (url: string, change: object = {}) => boxOver(transport, url, { ...kind.options, ...change });
  const connected = async () => {
    const peer = await kind.start();
    const { opening, ...rest } = box(peer.url);
    return { peer, ...rest, session: await opening };
  };

  it('names what is wrong with its options instead of throwing', () => {
    for (const url of kind.wrongUrls) {
      const issues = transport.options.safeParse({ ...kind.options, url }).error?.issues;
      expect(issues, url).toMatchObject([{ path: ['url'], message: expect.stringMatching(kind.wrongUrl) }]);
    }
  });

  it('TOP-2 BOX-HTTP-4 reports a wrong login and a missing peer by different codes, both retryable', async () => {
    const peer = await kind.start();
    const wrong = box(peer.url, kind.wrongLogin);
    await expect(wrong.opening).rejects.toMatchObject({ code: 'NOT_REGISTERED', severity: 'retryable' });
    await expect(wrong.opening).rejects.not.toThrow(/another-secret/);
    const away = box(`${new URL(peer.url).protocol}//127.0.0.1:${await freePort()}`);
    await expect(away.opening).rejects.toMatchObject({ code: 'PEER_MISSING', severity: 'retryable' });
  });

  it('gives up a peer that does not answer within connectTimeoutMs, and says so', async () => {
    const peer = await kind.start(true);
    const { opening } = box(peer.url, { connectTimeoutMs: 500 });
    await expect(opening).rejects.toMatchObject({ code: 'PEER_MISSING', severity: 'retryable' });
    await expect(opening).rejects.toThrow(kind.silence);
  });

  it('stops dialling when it is aborted', async () => {
    const peer = await kind.start(true);
    const { opening, abort } = box(peer.url);
    await peer.reached();
    abort.abort(new Error('the box stops'));
    await expect(opening).rejects.toThrow(/the box stops/);
  });

  it('ends without an error when it is closed, also twice, and sends nothing afterwards', async () => {
    const { session, peer } = await connected();
    const ending = drain(session.incoming);
    await Promise.all([session.close(), session.close()]);
    const { messages, reason } = await ending;
    expect(reason).toBe('');
    // Only a service of a dialect sends something unasked.
    if (transport.ownLogin === undefined) expect(messages).toEqual([]);
    await expect(session.send(shown())).rejects.toMatchObject({ code: 'LINK_LOST' });
    expect(peer.faults).toEqual([]);
  });

  it('ends with the reason when the connection is cut, and sends nothing afterwards', async () => {
    const { session, peer } = await connected();
    const ending = drain(session.incoming);
    peer.cut();
    expect((await ending).reason).toMatch(/^PayboxError: .*(ended|closed|ECONNRESET)/);
    await expect(session.send(shown())).rejects.toMatchObject({ code: 'LINK_LOST' });
  });

  // A box proves itself to the gateway by its secret; a service that it logs in to otherwise speaks a dialect of its own.
  if (transport.ownLogin !== undefined) return;

  describe('between a box and its gateway', () => {
    const talking = async () => {
      const { peer, session, ...rest } = await connected();
      const messages = session.incoming[Symbol.asyncIterator]();
      const next = async () => (await messages.next()).value;
      return { peer, session, ...rest, next, tell: peer.tell ?? expect.fail('no messages of a gateway') };
    };

    it('TOP-1 BOX-HTTP-1 BOX-HTTP-2 carries messages unchanged and in order, both ways', async () => {
      const { peer, session, tell, next } = await talking();
      const told = Array.from({ length: 3 }, withdraw);
      for (const message of told) await tell(encode(message));
      for (const message of told) expect(await next()).toEqual(message);
      const ups = Array.from({ length: 20 }, shown);
      await Promise.all(ups.map((up) => session.send(up)));
      expect(peer.received).toEqual(ups);
      expect(peer.faults).toEqual([]);
    });

    it('MSG-3 logs each illegal message once with its size, ignores unknown fields, and goes on', async () => {
      const { lines, events, tell, next } = await talking();
      const told = withdraw();
      const big = 'x'.repeat(20_000);
      const illegal = [...kind.illegal, '{', '{"v":1}', big, encode({ ...told, v: 2 } as never)];
      for (const payload of illegal) await tell(payload);
      await tell(JSON.stringify({ ...told, colour: 'red' }));
      expect(await next()).toEqual(told);
      expect(events()).toEqual(illegal.map(() => 'message-refused'));
      expect(JSON.stringify(lines[illegal.indexOf(big)])).toContain('20000 bytes');
    });

    it('MSG-9 stays connected when more messages wait than it stores', async () => {
      const { session, tell, next } = await talking();
      for (let sent = 0; sent < INCOMING_MAX + 50; sent += 1) await tell(encode(withdraw()));
      await session.send(shown());
      for (let read = 0; read < INCOMING_MAX; read += 1) expect(await next()).toMatchObject({ type: 'withdraw' });
      const last = withdraw();
      await tell(encode(last));
      expect(await next()).toEqual(last);
    });
  });
});
