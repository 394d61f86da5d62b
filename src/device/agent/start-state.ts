import type { Boot } from '../../lib/boot.ts';
import type { Clock } from '../../lib/clock.ts';
import { isOfBoot } from '../box/calendar.ts';
import { restore } from '../box/restore.ts';
import type { BoxConfig, BoxState } from '../box/state.ts';
import type { Journal } from './contract.ts';

/**
 * Returns the state with which a box starts, from its journal. It checks the calendar clock only if the journal is from
 * another boot, because the check may need some seconds.
 */
export async function stateAtStart(
  config: Omit<BoxConfig, 'boot'>,
  journal: Journal,
  boot: Boot,
  clock: Clock,
): Promise<BoxState> {
  const { id, offsetMs } = boot;
  const entries = journal.load();
  const isTimeRight = entries.length > 0 && !isOfBoot(entries, id) && (await boot.isTimeRight());
  const at = { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
  const inBoot = { ...config, boot: id === undefined ? undefined : { id, offsetMs } };
  return restore(inBoot, { entries, intact: journal.status().complete }, at, isTimeRight);
}
