import type { LookupFunction } from 'node:net';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import type { Random } from '../../lib/random.ts';
import type { GatewayConfig } from '../config/config.ts';
import type { OnStandby } from '../store/store.ts';
import type { Changes } from './changes.ts';
import type { OpenParts } from './open-parts.ts';
import type { Place } from './place.ts';
import type { TrafficLog } from './traffic-log.ts';

/** The base of every part of a gateway. It contains no part of the service and nothing on a disk. */
export interface World {
  config: GatewayConfig;
  /** The time of the gateway, whose calendar a sandbox may set. */
  clock: Clock;
  /** The clock of this machine, which nobody sets. */
  machine: Clock;
  random: Random;
  log: Logger;
  /** Reports to the console which lists have changed. */
  changes: Changes;
  trafficLog: TrafficLog;
  /** Connects to other machines. */
  outside: Outside;
  /** Closes the open parts. */
  opened: OpenParts;
  /** The place of this gateway among those of its database. */
  place: Place;
}

/** Connects to other machines, but never to the gateway's own ports. */
export interface Outside {
  /** The ports that the gateway listens at, added as they open. */
  ownPorts: Set<number>;
  /** Resolves names for one call, until the signal aborts. */
  lookup(signal: AbortSignal): LookupFunction;
}

/** The parts that a process passes to its gateway. */
export interface GatewayDeps {
  clock: Clock;
  random: Random;
  log: Logger;
  /** Called once when the gateway waits because another one uses the database. */
  onStandby?: OnStandby;
  boxScreen?: BoxScreen;
}

/** The screen of a box that runs in the same process, as in `paybox up`. */
export interface BoxScreen {
  terminalCode: string;
  /** The address of the box's own page. */
  pageUrl: string;
  /** Returns the picture on its display as PNG, or undefined before the first one. */
  picture(): Uint8Array | undefined;
}
