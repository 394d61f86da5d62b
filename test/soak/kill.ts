import { playSeries } from '../kill/series.ts';
import type { Soak } from './soak.ts';

/** Kills real programs; see test/kill. */
export const kill: Soak = {
  name: 'kill',
  unit: 'runs',
  amount: 10_000,
  async run({ amount, firstSeed, lanes, signal, progress }) {
    const seeds = Array.from({ length: amount }, (_, index) => firstSeed + index);
    const tally = await playSeries({
      seeds,
      lanes,
      signal,
      onProgress: ({ runs, payments, failures }) => {
        progress(runs, `${payments} payments, ${failures.length} failures`);
      },
    });
    const { failures, kills, runs, payments, pushes, unanswered, silent } = tally;
    return {
      figures: {
        runs,
        'agents killed': kills.agent,
        'gateways killed': kills.gateway,
        'brokers killed': kills.broker,
        'pushes confirmed': pushes,
        'requests unanswered': unanswered,
        'payments checked': payments,
        'of them shown but not spoken': silent,
      },
      failures,
    };
  },
};
