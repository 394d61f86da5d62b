import { BoxSecrets } from '../common/box-secrets.ts';
import { createDirectory, partnerFrom, VirtualAccountTable } from '../common/directory.ts';
import { openKnownLogins } from '../common/known-logins.ts';
import { Logins } from '../common/logins.ts';
import type { Stored } from '../common/stored.ts';
import { Vault } from '../common/vault.ts';
import type { World } from '../common/world.ts';
import { deliveriesFor } from '../money/payment-effects.ts';
import { seedRegistry } from '../registry/seed.ts';
import { DatabaseClock } from '../store/engines/database-clock.ts';
import type { RegistryStore } from '../store/repositories/registry.ts';
import type { DeliveriesFor } from '../store/startup/requeue.ts';
import { type OnStandby, openStore } from '../store/store.ts';

/**
 * Opens the second stage of a gateway: its store, updated from its file, and the parts that read it. `onStandby` is
 * called once when it waits because another gateway uses the database. Throws as `openStore` does.
 */
export async function openStored(world: World, onStandby: OnStandby | undefined): Promise<Stored> {
  const { config, clock, machine, random, log, opened, place } = world;
  const time = place.time ?? new DatabaseClock(machine, log);
  const { promise: vaultOpened, resolve } = Promise.withResolvers<Vault>();
  const seed = async (registry: RegistryStore) => {
    const vault = await Vault.open(config.dataDir, registry, random, place.vaultKey);
    resolve(vault);
    await seedRegistry(registry, config, { vault, atMs: clock.wallMs() });
  };
  const hooks = { onStandby, seed, deliveriesFor: deliveriesAgain(world, vaultOpened) };
  const compared = place.time === undefined ? time : undefined;
  const store = opened.keep(await openStore({ ...config, sharing: place.sharing }, log, { ...hooks, time: compared }));
  // Earlier versions had no `mode`, only `sandbox: false` for real money. Payments of such a store are not tests.
  await store.history.begin(config.sandbox ? 'test' : 'money', config.mode === 'live' ? 'test' : 'money');
  const vault = await vaultOpened;
  const secrets = await BoxSecrets.open(store, vault);
  const virtualAccounts = new VirtualAccountTable();
  const directory = createDirectory(world, { registry: store.registry, enrolled: secrets, vault, virtualAccounts });
  // In a shared store, others wait for their pushes. The work `stale pushes` ends those for which nobody waits.
  if (place.sharing === undefined) await store.orders.failUnfinished(clock.wallMs(), config.confirm);
  const { known, close } = await openKnownLogins(world, store);
  opened.add('known logins', close);
  const logins = new Logins(clock, known, place.budgets);
  return { store, directory, vault, secrets, time, logins, virtualAccounts };
}

/**
 * Returns deliveries of payments whose delivery a damaged store does not show. They are sent as repeated (clause
 * AGT-11).
 */
function deliveriesAgain({ config, random }: World, vaultOpened: Promise<Vault>): DeliveriesFor {
  return async (payment, order, sides, registry) => {
    const recipients = await registry.recipients(order, payment.bank_account);
    const row = await registry.find('partners', payment.partner);
    const listed = config.partners.find((it) => it.username === payment.partner);
    const callbackTo = (row && partnerFrom(row, listed, await vaultOpened))?.callback;
    const isOverQr = !sides.late && (sides.due === null || sides.due.paid > sides.due.amount);
    const how = { callbackId: random.uuid(), isOnline: () => true, isOverQr, due: sides.due };
    return deliveriesFor(payment, order, { recipients, callbackTo }, how);
  };
}
