import { metricsText } from '../../lib/metrics.ts';
import type { BoxEvent, BoxState, Send } from '../box/state.ts';

const ANNOUNCEMENTS = 'paybox_box_announcements_total';
/** Counts payments that came again, which the box does not announce again. */
const REPEATS = 'paybox_box_payments_repeated_total';

/** Counters of one agent, printed in the Prometheus text format. */
export class AgentMetrics {
  readonly #counts = new Map<string, number>([
    [ANNOUNCEMENTS, 0],
    [REPEATS, 0],
  ]);

  /** Counts one event. `announced` is from the state before it. */
  countEvent(event: BoxEvent, { announced }: BoxState): void {
    if (event.type === 'payment' && announced.includes(event.payment.transactionId)) this.#count(REPEATS);
    if (event.type === 'push' || event.type === 'payment' || event.type === 'unrecorded') {
      this.#count(`paybox_box_events_total{type="${event.type}"}`);
    }
  }

  countSends(sends: readonly Send[]): void {
    for (const send of sends) {
      const code = send.type === 'rejected' ? `,code="${send.code}"` : '';
      this.#count(`paybox_box_messages_total{type="${send.type}"${code}}`);
    }
  }

  countDraw(ok: boolean): void {
    this.#count(`paybox_box_frames_total{result="${ok ? 'drawn' : 'failed'}"}`);
  }

  /** Counts announced payments, aloud if the box has a voice. */
  countAnnouncements(payments: number): void {
    this.#count(ANNOUNCEMENTS, payments);
  }

  text(state: BoxState): string {
    const gauges: [string, number][] = [
      ['paybox_box_online', state.connection === 'registered' ? 1 : 0],
      ['paybox_box_reports_unsent', state.unsent.length],
      ['paybox_box_display_ok', state.faults.display === undefined ? 1 : 0],
      ['paybox_box_storage_ok', state.faults.storage === undefined ? 1 : 0],
      ['process_resident_memory_bytes', process.memoryUsage.rss()],
    ];
    const counts = Map.groupBy(this.#counts, ([name]) => name.replace(/\{.*/, ''));
    return metricsText([
      ...gauges.map(([name, value]) => ({ name, type: 'gauge' as const, samples: [['', value] as const] })),
      ...[...counts].map(([name, counted]) => ({
        name,
        type: 'counter' as const,
        samples: counted.map(([labelled, value]) => [labelled.slice(name.length), value] as const),
      })),
    ]);
  }

  #count(name: string, by = 1): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + by);
  }
}
