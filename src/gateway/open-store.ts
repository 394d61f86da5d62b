import type { Clock } from '../lib/clock.ts';
import { DatabaseClock } from '../store/engines/database-clock.ts';
import type { RegistryStore } from '../store/repositories/registry.ts';
import type { DeliveriesFor } from '../store/startup/requeue.ts';
import type { Store } from '../store/store.ts';
import { type OnStandby, openStore } from '../store/store.ts';
import { BoxSecrets } from './box-secrets.ts';
import type { GatewayConfig } from './config.ts';
import type { Context } from './context.ts';
import { createDirectory, type Directory, type DirectoryDeps, partnerFrom } from './directory.ts';
import type { OpenParts } from './open-parts.ts';
import { seedRegistry } from './registry/seed.ts';
import { deliveriesFor } from './service/payment-effects.ts';
import { isOfRegistry, type ShardPlace } from './shard.ts';
import { Vault } from './vault.ts';

interface StoreDeps extends Pick<Context, 'clock' | 'random' | 'log'>, Pick<DirectoryDeps, 'virtualAccountsOf'> {
  onStandby?: OnStandby | undefined;
  /** The shard of a cluster whose store it is. */
  place?: ShardPlace | undefined;
  /** The clock of this machine, which no fault sets. */
  machine: Clock;
}

/** The store of a gateway, and what reads it. */
export interface OpenedStore {
  store: Store;
  directory: Directory;
  vault: Vault;
  secrets: BoxSecrets;
  /** The calendar of its database. */
  time: DatabaseClock;
}

/** Opens the store of a gateway, and brings its registry up to date. Throws as `openStore`. */
export async function openGatewayStore(
  config: GatewayConfig,
  deps: StoreDeps,
  opened: OpenParts,
): Promise<OpenedStore> {
  const { clock, random, log, onStandby, virtualAccountsOf, place, machine } = deps;
  // A member compares its clock once for all its shards.
  const time = place?.time ?? new DatabaseClock(machine, log);
  const compared = place === undefined ? time : undefined;
  const { promise: vaultOpened, resolve } = Promise.withResolvers<Vault>();
  const seed = async (registry: RegistryStore) => {
    const vault = await Vault.open(config.dataDir, registry, random, place?.vaultKey);
    resolve(vault);
    if (isOfRegistry(place)) await seedRegistry(registry, config, { vault, atMs: clock.wallMs() });
  };
  // With a damaged store it is unknown which payments a box had got: they are sent as repeated (AGT-11).
  const deliveriesAgain: DeliveriesFor = async (payment, order, sides, registry) => {
    const recipients = await registry.recipients(order, payment.bank_account);
    const row = await registry.find('partners', payment.partner);
    const listed = config.partners.find((it) => it.username === payment.partner);
    const callbackTo = (row && partnerFrom(row, listed, await vaultOpened))?.callback;
    const isOverQr = !sides.late && (sides.due === null || sides.due.paid > sides.due.amount);
    const how = { callbackId: random.uuid(), isOnline: () => true, isOverQr, due: sides.due };
    return deliveriesFor(payment, order, { recipients, callbackTo }, how);
  };
  const hooks = { onStandby, seed, deliveriesFor: deliveriesAgain, time: compared };
  const store = opened.keep(await openStore({ ...config, shard: place }, log, hooks));
  // Before `mode` there was only `sandbox: false` for real money: its payments are no tests.
  await store.history.begin(config.sandbox ? 'test' : 'money', config.mode === 'live' ? 'test' : 'money');
  const vault = await vaultOpened;
  const { registry } = store;
  const secrets = await BoxSecrets.open({ store: store.boxSecrets, registry, vault });
  const directory = createDirectory({
    ...{ registry, enrolled: secrets, config, vault, virtualAccountsOf },
    onChange: () => place?.tell({ about: 'registry' }),
    isShared: place !== undefined,
  });
  return { store, directory, vault, secrets, time };
}
