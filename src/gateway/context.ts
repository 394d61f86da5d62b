import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/log.ts';
import type { Random } from '../lib/random.ts';
import type { Store } from '../store/store.ts';
import type { Changes } from './changes.ts';
import type { GatewayConfig } from './config.ts';
import type { Directory } from './directory.ts';
import type { TrafficLog } from './traffic-log.ts';

/** Shared by the parts of a gateway; each part names those that it needs. */
export interface Context {
  config: GatewayConfig;
  directory: Directory;
  store: Store;
  trafficLog: TrafficLog;
  changes: Changes;
  clock: Clock;
  random: Random;
  log: Logger;
}
