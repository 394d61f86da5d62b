import { expect, it } from 'vitest';
import { createReceiveCredit } from '../../src/gateway/money/receive-credits.ts';
import type { PaymentHearers } from '../../src/gateway/money/receive-payment.ts';
import type { Credit } from '../../src/gateway/money/sources/source.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { opened } from '../store/rows.ts';
import { temporaryFolder } from '../support/net.ts';
import { SharedPlaces } from './shared-places.ts';
import { only, storedIn, worldOf } from './stage-records.ts';

const NOW_MS = Date.parse('2026-01-05T12:00:00Z');
const ACCOUNT = '1234567890';

const account = (change: object) => ({
  ...{ bank_account: ACCOUNT, bank_code: 'MB', user_bank_name: 'SHOP', partner: 'old', content_prefix: null },
  ...{ managed: 'store' as const, disabled: 0, changed_at_ms: 1 },
  ...change,
});

const credit = (reference: string): Credit => ({
  ...{ sourceId: reference, reference, bankAccount: ACCOUNT, virtualAccount: '', amount: 50_000, text: 'tien' },
  bankTimeMs: NOW_MS,
});

it('CRE-4 CRE-1 a credit goes to the partner that the account has in its own transaction, and to nobody once the account is gone', async () => {
  const store = await opened({ dataDir: await temporaryFolder() });
  const world = worldOf({ clock: new VirtualClock(NOW_MS), place: new SharedPlaces().join('a') });
  const stored = storedIn(store, world);
  const hearers = only<PaymentHearers>({
    hub: { session: () => undefined, resendFromStore: () => undefined },
    onPaid: () => undefined,
    dispatcher: { wake: () => undefined },
  });
  const receive = createReceiveCredit(world, stored, hearers);
  await store.registry.put('accounts', account({}));
  expect((await receive('till', credit('FT1'), false)).result).toBe('unmatched');
  expect((await stored.directory.account(ACCOUNT))?.partner).toBe('old');
  // Another gateway changes the account. This one has the row in its cache.
  await store.registry.put('accounts', account({ partner: 'new' }));
  expect((await receive('till', credit('FT2'), false)).result).toBe('unmatched');
  expect((await stored.directory.account(ACCOUNT))?.partner).toBe('old');
  expect((await store.payments.newest(9)).map((it) => it.partner)).toEqual(['new', 'old']);
  await store.registry.remove('accounts', ACCOUNT);
  expect((await receive('till', credit('FT3'), false)).result).toBe('account-unknown');
  expect(await store.payments.newest(9)).toHaveLength(2);
});
