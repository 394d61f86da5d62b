import { expect, it } from 'vitest';
import { SEND_QR, testGateway } from '../gateway/harness.ts';
import { eventually } from '../support/net.ts';
import { isOnline, isReady, startBox } from './box.ts';
import { PATIENCE_MS, payAnOrder, pushOf, reported } from './trade.ts';

const SUCCESS = { status: 'SUCCESS', message: '' };
/** An agent that was superseded asks once a minute whether the newer one is gone. */
const RETURN_MS = 120_000;

it('MSG-8 of two agents with one identity the newer one wins, the older one says so and has the box back once the newer one is gone, and one announces a payment', {
  timeout: 300_000,
}, async () => {
  // Both at once: most of it is the minute that the older one waits.
  await Promise.all([expectNewerWins('mqtt'), expectNewerWins('http')]);
});

async function expectNewerWins(transport: 'mqtt' | 'http'): Promise<void> {
  const on = (what: string) => `${what} over ${transport}`;
  const gateway = await testGateway();
  const link = { transport, url: transport === 'mqtt' ? gateway.mqttUrl : gateway.origin };
  const older = await startBox(link);
  await eventually(on('the older one online'), () => isOnline(older), PATIENCE_MS);
  const newer = await startBox(link);
  await eventually(on('the newer one online'), () => isReady(newer), PATIENCE_MS);
  const superseded = async () => (await older.status()).fault?.code === 'SUPERSEDED';
  await eventually(on('the older one superseded'), superseded, PATIENCE_MS);
  const saysSo = () => older.logged('link-lost').some(({ reason }) => String(reason).includes('SUPERSEDED'));
  await eventually(on('its reason in the log'), saysSo, PATIENCE_MS);

  expect((await gateway.post(SEND_QR, pushOf('DH1'))).body, transport).toEqual(SUCCESS);
  expect((await newer.status()).order?.orderId, transport).toBe('DH1');
  await gateway.mock('/orders/DH1/pay', 'POST');
  await eventually(on('the payment'), () => newer.logged('payment-shown').length === 1, PATIENCE_MS);
  await eventually(on('its report'), async () => (await reported(gateway)).length === 1, PATIENCE_MS);

  await newer.running.stop('SIGTERM');
  await eventually(on('the box offline'), () => gateway.log.some((it) => it.event === 'box-disconnected'), PATIENCE_MS);
  await payAnOrder(gateway, 'DH2');
  expect((await gateway.post(SEND_QR, pushOf('DH3'))).body.message, transport).toBe('BOX_OFFLINE');
  expect(await superseded(), transport).toBe(true);
  expect(older.logged('payment-shown'), transport).toEqual([]);
  await eventually(on('the older one has the box again'), () => isReady(older), RETURN_MS);
  await eventually(on('the payment of meanwhile'), () => older.logged('payment-shown').length === 1, PATIENCE_MS);
  expect((await gateway.post(SEND_QR, pushOf('DH4'))).body, transport).toEqual(SUCCESS);
  expect(newer.logged('payment-shown'), transport).toHaveLength(1);
}
