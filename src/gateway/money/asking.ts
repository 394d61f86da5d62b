import type { CreditResult } from '../common/told-credit.ts';
import type { World } from '../common/world.ts';
import { createAskSource } from './ask-source.ts';
import type { ReceiveCredit } from './receive-credits.ts';
import type { AskSource, Source } from './sources/source.ts';

/** Asks the lists of sources, and takes their credits. */
export interface Asking {
  /** Asks a source. All who ask it wait for the same turn. */
  of(source: Source): AskSource;
  receiveCredit: ReceiveCredit;
  /** Counts what a source told. */
  heard(source: string, result: CreditResult): void;
}

export function createAsking({ clock, outside }: World, to: Pick<Asking, 'receiveCredit' | 'heard'>): Asking {
  const asked = new WeakMap<Source, AskSource>();
  const of = (source: Source) => {
    const ask = asked.get(source) ?? createAskSource(clock, outside);
    asked.set(source, ask);
    return ask;
  };
  return { of, ...to };
}
