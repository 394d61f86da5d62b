import { Changes } from '../../src/gateway/common/changes.ts';
import { createDirectory, VirtualAccountTable } from '../../src/gateway/common/directory.ts';
import { Logins } from '../../src/gateway/common/logins.ts';
import { OpenParts } from '../../src/gateway/common/open-parts.ts';
import { placeAlone } from '../../src/gateway/common/place.ts';
import type { Stored } from '../../src/gateway/common/stored.ts';
import { TrafficLog } from '../../src/gateway/common/traffic-log.ts';
import type { Vault } from '../../src/gateway/common/vault.ts';
import type { World } from '../../src/gateway/common/world.ts';
import { parseGatewayConfig } from '../../src/gateway/config/config.ts';
import type { Store } from '../../src/gateway/store/store.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { quietLog } from '../support/kept-log.ts';

/** Some parts of a record, however deep, and functions whose answers have some parts. */
export type PartsOf<T> = T extends (...args: infer Args) => infer Answer
  ? (...args: Args) => PartsOf<Answer>
  : T extends Promise<infer Of>
    ? Promise<PartsOf<Of>>
    : T extends object
      ? T | { [Part in keyof T]?: PartsOf<T[Part]> | undefined }
      : T;

/** Asked for by the language, of any object. */
const ASKED_OF_ALL = ['then', 'toJSON'];

/** A record of which a test has these parts alone. Whoever asks for another one fails. */
export function only<T extends object>(parts: PartsOf<T>): T {
  return guarded(parts) as T;
}

/** The same record for the same parts. */
const records = new WeakMap<object, object>();

function guarded(parts: object): object {
  const known = records.get(parts) ?? guard(parts);
  records.set(parts, known);
  return known;
}

function guard(parts: object): object {
  return new Proxy(parts, {
    get: (known, name) => {
      if (typeof name !== 'symbol' && !(name in known) && !ASKED_OF_ALL.includes(name)) {
        throw new Error(`this test has no ${name}`);
      }
      const part: unknown = Reflect.get(known, name);
      return isPlain(part) ? guarded(part) : part;
    },
  });
}

function isPlain(part: unknown): part is object {
  return typeof part === 'object' && part !== null && Object.getPrototypeOf(part) === Object.prototype;
}

/** The world of a gateway with no files, whose log nobody reads; `parts` replace its own. */
export function worldOf({
  config = parseGatewayConfig({ dataDir: 'none' }, 'test'),
  ...parts
}: Partial<World> = {}): World {
  const { clock = systemClock, random = systemRandom, changes = new Changes() } = parts;
  const { log = quietLog(clock) } = parts;
  const { trafficLog = new TrafficLog({ clock, random, changes }) } = parts;
  return {
    config,
    machine: clock,
    outside: { ownPorts: new Set(), lookup: () => () => undefined },
    opened: new OpenParts(clock, log),
    place: placeAlone(random.uuid()),
    ...parts,
    clock,
    random,
    changes,
    log,
    trafficLog,
  };
}

/** The parts that a test stores, with logins and virtual accounts of its own. */
export function storedOf(parts: PartsOf<Stored>): Stored {
  return only<Stored>({ logins: new Logins(systemClock), virtualAccounts: new VirtualAccountTable(), ...parts });
}

/** A configuration has its secrets itself. */
export const NO_VAULT = only<Vault>({ unwrap: (of: string) => `no secret ${of}` });

/** A store with the directory of its rows. */
export function storedIn(store: Store, world: World): Stored {
  const { registry, boxSecrets: enrolled } = store;
  const virtualAccounts = new VirtualAccountTable();
  const directory = createDirectory(world, { registry, enrolled, vault: NO_VAULT, virtualAccounts });
  return storedOf({ store, directory, virtualAccounts });
}
