import { flushCompileCache } from 'node:module';
import { ChannelServer } from '../../bench/serve/channel.ts';
import { systemClock, withDeadline } from '../../lib/clock.ts';
import { ConfigError } from '../../lib/errors.ts';
import { STOP_BUDGET_MS } from '../../lib/shutdown.ts';
import { packageName } from '../../lib/version.ts';
import { shareGlyphs } from '../shared/glyph-cache.ts';
import { StopSignal } from '../shared/stop-signal.ts';
import { anySeed, LIBRARY, scenariosIn, targetOf, withBoxes } from './bench-target.ts';

/** Runs `paybox bench serve --channel`: opens rigs for the program that started this one, and ends with it. */
export async function serveChannel(options: { report?: string }): Promise<void> {
  if (process.send === undefined) {
    throw new ConfigError(
      '--channel: no program has started this one with a channel',
      `import { openPaybox } from '${packageName()}' starts it; without --channel it answers HTTP`,
    );
  }
  shareGlyphs();
  const stop = new StopSignal();
  const server = new ChannelServer({
    targetOf: async (choice, seed) => targetOf({ ...choice, report: options.report }, seed),
    scenarios: () => scenariosIn(LIBRARY),
    withBoxes,
    anySeed,
    probes: [],
  });
  process.on('message', (message) => {
    void server.answer(message).then((answer) => {
      // The program that asked may have ended meanwhile. Other code notices its end.
      if (answer !== undefined) process.send?.(answer, () => undefined);
    });
  });
  // The parent stops referencing the channel while it waits for nothing. Here the channel prevents the end of the
  // program.
  process.channel?.ref();
  flushCompileCache();
  const signal = await stop.received;
  await withDeadline(systemClock, STOP_BUDGET_MS, server.close(`it was ended by ${signal}`));
  process.exit(0);
}
