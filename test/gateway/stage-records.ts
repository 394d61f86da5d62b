import { PassThrough } from 'node:stream';
import { Changes } from '../../src/gateway/changes.ts';
import { parseGatewayConfig } from '../../src/gateway/config.ts';
import { Logins } from '../../src/gateway/logins/logins.ts';
import { OpenParts } from '../../src/gateway/open-parts.ts';
import type { Stored } from '../../src/gateway/stored.ts';
import { TrafficLog } from '../../src/gateway/traffic-log.ts';
import { VirtualAccountTable } from '../../src/gateway/virtual-accounts.ts';
import type { World } from '../../src/gateway/world.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/log.ts';
import { systemRandom } from '../../src/lib/random.ts';

/** A record of which a test has these parts alone. Whoever asks for another one fails. */
export function only<T extends object>(parts: { [Part in keyof T]?: Partial<T[Part]> | undefined }): T {
  return new Proxy(parts, {
    get: (known, name) => {
      if (typeof name === 'symbol' || name in known) return Reflect.get(known, name) as unknown;
      throw new Error(`this test has no ${name}`);
    },
  }) as T;
}

/** The world of a gateway with no files, whose log nobody reads; `parts` replace its own. */
export function worldOf({
  config = parseGatewayConfig({ dataDir: 'none' }, 'test'),
  ...parts
}: Partial<World> = {}): World {
  const { clock = systemClock, random = systemRandom, changes = new Changes() } = parts;
  const { log = createLogger(new PassThrough().resume(), clock, 'json') } = parts;
  return {
    config,
    machine: clock,
    trafficLog: new TrafficLog({ clock, random, changes }),
    outside: { ownPorts: new Set(), lookup: () => () => undefined },
    opened: new OpenParts(clock, log),
    place: undefined,
    ...parts,
    clock,
    random,
    changes,
    log,
  };
}

/** The parts that a test stores, with logins and virtual accounts of its own. */
export function storedOf(parts: { [Part in keyof Stored]?: Partial<Stored[Part]> | undefined }): Stored {
  return only<Stored>({ logins: new Logins(systemClock), virtualAccounts: new VirtualAccountTable(), ...parts });
}
