import { LoopDelay } from '../../lib/loop-delay.ts';
import { Histogram, labelled, METRICS_TYPE, type MetricFamily, metricsText } from '../../lib/metrics.ts';
import type { Place } from './place.ts';

/** Undelivered callbacks. */
export interface BacklogCounts {
  waiting: number;
  /** Dead letters: they are tried again only by hand. */
  failed: number;
  /** Age of the oldest waiting callback; 0 without one. */
  oldestWaitingSeconds: number;
}

/** Returns `undefined` while the store does not answer. Never rejects. */
export type CountBacklog = () => Promise<BacklogCounts | undefined>;

/** Metrics of the gateway. */
export interface Metrics {
  /** Counts the answer to a push: `SUCCESS` or the code of its failure. */
  pushed(result: string, seconds: number): void;
  /** Counts a report of a source: the result of a credit, `ignored` or `refused`. */
  heard(source: string, result: string): void;
  /** Counts an attempt of a callback. */
  called(result: 'delivered' | 'retry' | 'failed'): void;
  contentType: string;
  text(): Promise<string>;
}

const SECONDS = [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10];

export function createMetrics(
  boxesOnline: () => number,
  backlog: CountBacklog,
  clock: { readonly aheadMs: number | undefined },
  place: Pick<Place, 'seen' | 'lanes'>,
): Metrics {
  const pushes = new Map<string, number>();
  const callbacks = new Map<string, number>();
  const credits = new Map<string, number>();
  const seconds = new Histogram(SECONDS);
  const loopDelay = new LoopDelay();
  return {
    pushed: (result, took) => {
      count(pushes, { result });
      seconds.observe(took);
    },
    heard: (source, result) => count(credits, { source, result }),
    called: (result) => count(callbacks, { result }),
    contentType: METRICS_TYPE,
    text: async () =>
      metricsText([
        {
          name: 'paybox_gateway_pushes_total',
          help: 'send-qr requests by result: SUCCESS or the error code',
          type: 'counter',
          samples: pushes,
        },
        {
          name: 'paybox_gateway_callbacks_total',
          help: 'attempts of transaction-sync callbacks by result: delivered, retry or failed',
          type: 'counter',
          samples: callbacks,
        },
        {
          name: 'paybox_gateway_credits_total',
          help: 'what sources told, by result: paid, unmatched, duplicate, account-unknown, too-old, ignored or refused',
          type: 'counter',
          samples: credits,
        },
        {
          name: 'paybox_gateway_send_qr_seconds',
          help: 'time from a valid send-qr request to its answer',
          type: 'histogram',
          samples: seconds.samples(),
        },
        gauge(
          'paybox_gateway_event_loop_delay_max_seconds',
          'the longest time for which the gateway could do nothing else, since the scrape before',
          loopDelay.longestSeconds(),
        ),
        gauge('paybox_gateway_boxes_online', 'boxes that are registered at this gateway', boxesOnline()),
        gauge(
          'paybox_gateway_clock_ahead_seconds',
          'how far the clock of this machine is ahead of that of the PostgreSQL database; below 0 when it is behind',
          secondsOf(clock.aheadMs),
        ),
        ...gaugesOf(await backlog()),
        ...clusterGauges(place),
      ]),
  };
}

function count(counts: Map<string, number>, labels: Readonly<Record<string, string>>): void {
  const named = labelled(labels);
  counts.set(named, (counts.get(named) ?? 0) + 1);
}

function secondsOf(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : ms / 1000;
}

function gauge(name: string, help: string, value: number | undefined): MetricFamily {
  return { name, help, type: 'gauge', samples: value === undefined ? [] : [['', value]] };
}

/** Returns the gauges of the gateways that share a database. A gateway alone has none. */
function clusterGauges(place: Pick<Place, 'seen' | 'lanes'>): MetricFamily[] {
  const gateways = place.seen();
  if (gateways === undefined) return [];
  return [
    gauge('paybox_cluster_gateways', 'gateways of the database that this one sees, itself included', gateways.length),
    gauge('paybox_cluster_doors', 'lanes without a gateway at which this one answers', place.lanes.doors().length),
  ];
}

/** Returns the gauges of the backlog. They are left out while the store does not answer. */
function gaugesOf(now: BacklogCounts | undefined): MetricFamily[] {
  return [
    gauge('paybox_gateway_callbacks_waiting', 'callbacks that are still to be delivered', now?.waiting),
    gauge('paybox_gateway_callbacks_failed', 'callbacks that are not tried again: dead letters', now?.failed),
    gauge(
      'paybox_gateway_callbacks_oldest_waiting_seconds',
      'age of the oldest callback that is still to be delivered; 0 when none is',
      now?.oldestWaitingSeconds,
    ),
  ];
}
