import type { CreditResult } from '../common/told-credit.ts';
import type { World } from '../common/world.ts';
import { createAskSource } from './ask-source.ts';
import type { ReceiveCredit } from './receive-credits.ts';
import type { AskSource, Source } from './sources/source.ts';

interface CreditReceiver {
  receiveCredit: ReceiveCredit;
  /** Counts a credit in the metrics, by source and result. */
  heard(source: string, result: CreditResult): void;
}

/** Reads the lists of sources and receives their credits. */
export interface Asking extends CreditReceiver {
  /** Returns the function that calls this source. All callers of one source share its rate limit. */
  of(source: Source): AskSource;
}

export function createAsking({ clock, outside }: World, to: CreditReceiver): Asking {
  const asked = new WeakMap<Source, AskSource>();
  const of = (source: Source) => {
    const ask = asked.get(source) ?? createAskSource(clock, outside);
    asked.set(source, ask);
    return ask;
  };
  return { of, ...to };
}
