import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { eventually } from '../support/net.ts';
import { type PartnerCall, partnerServer, processed, status, testGateway } from './harness.ts';

describe('SYN with a dead partner', () => {
  it('SYN-4 a callback is delivered at once, however many others wait for a dead partner', async () => {
    const answer = (call: PartnerCall, response: ServerResponse, request: Parameters<typeof processed>[2]) =>
      (JSON.parse(call.body).content === 'LIVE' ? processed : status(500))(call, response, request);
    const clock = new VirtualClock();
    const partner = await partnerServer(answer);
    const gateway = await testGateway({ clock, callback: { url: partner.url }, config: { mqtt: null } });
    for (let i = 0; i < 20; i += 1) {
      await Promise.all(Array.from({ length: 26 }, () => gateway.testCallback()));
    }
    await eventually('520 failed attempts', () => gateway.logged('callback-deferred').length >= 520);
    await gateway.testCallback({ content: 'LIVE' });
    await eventually('the live one', () => partner.calls.some((it) => it.body.includes('LIVE')));
    expect(partner.calls).toHaveLength(521);
  });
});
