import { expect, it } from 'vitest';
import { eventually } from '../support/net.ts';
import { askFaults, openShop } from './faults.ts';

/** The silence after which each end takes the other for lost is 22 s at most, beyond which a busy machine may need more. */
const SILENCE_MAX_MS = 60_000;

it.each([
  ['mqtt', { keepaliveSeconds: 5 }],
  ['http', {}],
] as const)(
  'FLT-9 half-open over %s: both ends find out by themselves',
  { timeout: 120_000 },
  async (transport, link) => {
    const shop = await openShop(transport, { link });
    const { id } = await shop.inject({ fault: 'half-open', seconds: 300 });
    const isOffline = () => shop.gateway.log.some((it) => it.event === 'box-offline');
    await eventually(
      'both ends to find out',
      async () => isOffline() && !(await shop.box.status()).online,
      SILENCE_MAX_MS,
    );
    expect((await askFaults(shop.gateway, `/${id}`, 'DELETE')).status).toBe(204);
    await shop.expectNormal();
  },
);
