import type { FaultName, FaultOrder, StandingFault } from '../protocol/faults.ts';
import { type Result, refuse } from './result.ts';

/** A fault that can be ordered here. */
export interface OfferedFault {
  name: FaultName;
  place: string;
  about: string;
  seconds: number | null;
  /** The content that orders it; null where none does. */
  magic: string | null;
  /** Whether it can be ordered for one box. */
  isPerBox: boolean;
}

/** Orders of faults, as `/_mock/faults` takes them. */
export interface FaultOrders {
  /** Nothing outside of a sandbox. */
  offered(): OfferedFault[];
  standing(): StandingFault[];
  order(order: FaultOrder): Result<StandingFault>;
  /** Whether such a fault was active. */
  end(id: string): boolean;
  endAll(): void;
}

/** Outside of a sandbox there are no faults. */
export const NO_FAULTS: FaultOrders = {
  offered: () => [],
  standing: () => [],
  order: () => refuse('E75', 'not a sandbox: no faults can be ordered'),
  end: () => false,
  endAll: () => undefined,
};
