import { expect, it } from 'vitest';
import { field, sealed } from '../protocol/payloads.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import wallets from '../vectors/wallet-qr.json' with { type: 'json' };
import { BOX1, qrFor, testGateway } from './harness.ts';

const MOMO = { bankAccount: 'PSP0000000000000000', bankCode: 'momo', userBankName: 'NGUYEN VAN A' };
const ID = 'MOMOW2W00000000';

/** The QR of a person at MoMo today, with an amount. */
function momoQr(id: string): string {
  const [account = ''] = /38\d{2}.*QRIBFTTA/.exec(wallets[0]?.payload ?? '') ?? [];
  const labels = field('62', field('05', id));
  return sealed(
    field('00', '01'),
    field('01', '12'),
    account,
    field('53', '704'),
    field('54', '50000'),
    field('58', 'VN'),
    labels,
  );
}

it('QRP-8 THR-23 send-qr takes the QR of a wallet that the owner has named, and its box is told the name', async () => {
  const box = { ...BOX1, account: MOMO.bankAccount };
  const gateway = await testGateway({
    config: {
      accounts: [MOMO],
      boxes: [box],
      partners: [{ username: 'demo', password: 'demo-secret', accounts: [MOMO.bankAccount] }],
      walletIds: { [MOMO.bankAccount]: [ID] },
    },
  });
  const fake = await connectFakeBox({ gateway, identity: box, transport: 'http' });
  expect(fake.of('welcome')).toMatchObject([{ link: { bankAccount: MOMO.bankAccount, walletIds: [ID] } }]);
  const push = { bankAccount: MOMO.bankAccount, bankCode: 'momo' };
  expect((await gateway.sendQr({ ...push, qrCode: momoQr(ID) })).body).toEqual({ status: 'SUCCESS', message: '' });
  const refused = await gateway.sendQr({ ...push, qrCode: momoQr('MOMOW2W00000001') });
  expect(refused.body.message).toBe('QR_INVALID');
  expect(refused.headers.get('x-paybox-reason')).toContain(`not among walletIds of ${MOMO.bankAccount}`);
  expect((await gateway.sendQr({ ...push, qrCode: qrFor() })).body.message).toBe('QR_MISMATCH');
});
