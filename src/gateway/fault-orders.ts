import type { ActiveFaultView, FaultName, FaultOrder } from '../protocol/faults.ts';
import { type Result, refuse } from './result.ts';

/** A fault that an admin can order. */
export interface OfferedFault {
  name: FaultName;
  place: string;
  about: string;
  seconds: number | null;
  /** The content of a payment or push that orders it; null if there is none. */
  magic: string | null;
  /** Whether it can be ordered for one box. */
  isPerBox: boolean;
}

/** Orders of faults at `/_mock/faults`. */
export interface FaultOrders {
  /** Empty outside a sandbox. */
  offered(): OfferedFault[];
  active(): ActiveFaultView[];
  /** With `sharedId` all shards of a cluster have this fault: it has that id, and happens as often as ordered in all of them together. */
  order(order: FaultOrder, sharedId?: string): Result<ActiveFaultView>;
  /** A fault of all shards has happened in another one. */
  happenedElsewhere(id: string, times: number): void;
  /** Ends a fault. Returns whether it was active. */
  end(id: string): boolean;
  endAll(): void;
}

/** Used outside a sandbox. */
export const NO_FAULTS: FaultOrders = {
  offered: () => [],
  active: () => [],
  order: () => refuse('E75', 'not a sandbox: no faults can be ordered'),
  happenedElsewhere: () => undefined,
  end: () => false,
  endAll: () => undefined,
};
