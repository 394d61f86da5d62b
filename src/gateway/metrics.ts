import { Counter, Gauge, Histogram, Registry } from 'prom-client';

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

/** Metrics of the gateway, in their own registry. */
export interface Metrics {
  /** Counts the answer to a push: `SUCCESS` or the code of its failure. */
  pushed(result: string, seconds: number): void;
  /** Counts what a source told: the result of a credit, `ignored` or `refused`. */
  heard(source: string, result: string): void;
  /** Counts an attempt of a callback. */
  called(result: 'delivered' | 'retry' | 'failed'): void;
  contentType: string;
  text(): Promise<string>;
}

const SECONDS = [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10];

export function createMetrics(boxesOnline: () => number, backlog: CountBacklog): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const pushes = new Counter({
    name: 'paybox_gateway_pushes_total',
    help: 'send-qr requests by result: SUCCESS or the error code',
    labelNames: ['result'],
    registers,
  });
  const callbacks = new Counter({
    name: 'paybox_gateway_callbacks_total',
    help: 'attempts of transaction-sync callbacks by result: delivered, retry or failed',
    labelNames: ['result'],
    registers,
  });
  const credits = new Counter({
    name: 'paybox_gateway_credits_total',
    help: 'what sources told, by result: paid, unmatched, duplicate, account-unknown, too-old, ignored or refused',
    labelNames: ['source', 'result'],
    registers,
  });
  const seconds = new Histogram({
    name: 'paybox_gateway_send_qr_seconds',
    help: 'time from a valid send-qr request to its answer',
    buckets: SECONDS,
    registers,
  });
  new Gauge({
    name: 'paybox_gateway_boxes_online',
    help: 'registered boxes',
    registers,
    collect() {
      this.set(boxesOnline());
    },
  });
  gaugesOf(backlog, registers);
  return {
    pushed: (result, took) => {
      pushes.inc({ result });
      seconds.observe(took);
    },
    heard: (source, result) => credits.inc({ source, result }),
    called: (result) => callbacks.inc({ result }),
    contentType: registry.contentType,
    text: () => registry.metrics(),
  };
}

function gaugesOf(backlog: CountBacklog, registers: Registry[]): void {
  const gauge = (name: string, help: string, read: (now: BacklogCounts) => number) =>
    new Gauge({
      name,
      help,
      registers,
      async collect() {
        // Without an answer of the store this number is left out.
        const now = await backlog();
        if (now === undefined) this.remove();
        else this.set(read(now));
      },
    });
  gauge('paybox_gateway_callbacks_waiting', 'callbacks that are still to be delivered', (it) => it.waiting);
  gauge('paybox_gateway_callbacks_failed', 'callbacks that are not tried again: dead letters', (it) => it.failed);
  gauge(
    'paybox_gateway_callbacks_oldest_waiting_seconds',
    'age of the oldest callback that is still to be delivered; 0 when none is',
    (it) => it.oldestWaitingSeconds,
  );
}
