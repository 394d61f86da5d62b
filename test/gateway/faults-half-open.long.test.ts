import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { holdSocket } from '../../src/gateway/faults/link-faults.ts';
import { LimitedSocket } from '../../src/protocol/packet-limit.ts';
import { eventually } from '../support/net.ts';
import { askFaults, openShop } from './faults.ts';

/** The silence after which each end takes the other for lost is 22 s at most, beyond which a busy machine may need more. */
const SILENCE_MAX_MS = 60_000;

it.each([
  ['mqtt', { keepaliveSeconds: 5 }, /Keepalive timeout/, 'keep alive timeout'],
  ['http', {}, /not done within|was silent/, 'it was silent for 15000 ms'],
] as const)('FLT-9 half-open over %s: both ends find out by themselves', async (transport, link, atBox, atGateway) => {
  const shop = await openShop(transport, { link });
  const { id } = await shop.inject({ fault: 'half-open', seconds: 300 });
  const isOffline = () => shop.gateway.log.some((it) => it.event === 'box-disconnected');
  await eventually(
    'both ends to find out',
    async () => isOffline() && !(await shop.box.status()).online,
    SILENCE_MAX_MS,
  );
  expect(shop.box.log.find((it) => it.event === 'link-lost')?.reason).toMatch(atBox);
  expect(shop.gateway.log.some((it) => it.why === atGateway || it.reason === atGateway)).toBe(true);
  expect((await askFaults(shop.gateway, `/${id}`, 'DELETE')).status).toBe(204);
  await shop.expectNormal();
});

it('FLT-9 a held connection that is ended stays open until it is released', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const dial = async () => {
    const far = connect((server.address() as AddressInfo).port, '127.0.0.1');
    const [near] = (await once(server, 'connection')) as [Socket];
    onTestFinished(() => void far.destroy());
    return { near, far };
  };
  onTestFinished(() => void server.close());
  const { near, far: held } = await dial();
  const { near: echo, far: other } = await dial();
  echo.pipe(echo);
  const limited = new LimitedSocket(near, { packetBytesMax: 1_000, unreadBytesMax: 1_000 });
  const release = holdSocket(near);
  const seen: string[] = [];
  for (const event of ['data', 'end', 'close']) held.on(event, () => seen.push(event));
  limited.write('x');
  limited.destroy();
  for (let turns = 0; turns < 20; turns += 1) {
    other.write('y');
    await once(other, 'data');
  }
  expect(seen).toEqual([]);
  release();
  await once(held, 'close');
});
