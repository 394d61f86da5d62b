import mqtt from 'mqtt';
import { loginOf } from '../../src/protocol/keys.ts';
import { Fixture, Shop, SPARE_BOX, startPair } from './fixture.ts';
import { type Benchmark, percentile, rowUnder } from './row.ts';

const WARM_UP = 40;
const SAMPLES = 300;
const PAYMENTS = 100;

/**
 * From send-qr to the confirmed screen, compared with a no-op of the same HTTP server plus a QoS 1 round trip of the same broker.
 */
export const push: Benchmark = {
  name: 'push',
  async run(progress) {
    const fixture = new Fixture();
    try {
      const pair = await startPair(fixture);
      const shop = new Shop(pair.baseUrl);
      await shop.login();
      const spare = await openSpareBox(pair);
      const ours: number[] = [];
      const floor: number[] = [];
      for (let n = 0; n < WARM_UP + SAMPLES; n += 1) {
        if (n % 100 === 0) progress(`push ${n}/${WARM_UP + SAMPLES}`);
        const body = await shop.prepare();
        const pushMs = await took(() => shop.send(body));
        const floorMs = await took(async () => {
          await (await fetch(`${pair.origin}/healthz`)).text();
          await spare.publish();
        });
        if (n < WARM_UP) continue;
        ours.push(pushMs);
        floor.push(floorMs);
      }
      await spare.close();
      const floorOf = (share: number) => ({ name: 'HTTP no-op + QoS 1 round trip', value: percentile(floor, share) });
      return [
        rowUnder('send-qr to confirmed on screen, p50', 'ms', percentile(ours, 0.5), floorOf(0.5), 20),
        rowUnder('send-qr to confirmed on screen, p99', 'ms', percentile(ours, 0.99), floorOf(0.99), 60),
      ];
    } finally {
      await fixture.close();
    }
  },
};

/** From the test callback's call to `paid` on the box, compared with the call's own answer. */
export const payment: Benchmark = {
  name: 'payment',
  async run(progress) {
    const fixture = new Fixture();
    try {
      const pair = await startPair(fixture);
      const shop = new Shop(pair.baseUrl);
      await shop.login();
      const events = await watch(`${pair.boxUrl}/events`);
      const paid: number[] = [];
      const answered: number[] = [];
      for (let n = 0; n < PAYMENTS; n += 1) {
        if (n % 25 === 0) progress(`payment ${n}/${PAYMENTS}`);
        const body = await shop.prepare();
        await shop.send(body);
        const seen = events.next((text) => text.includes('"state":"paid"') && text.includes(`"${body.orderId}"`));
        const startedMs = performance.now();
        await shop.pay(String(body.content));
        answered.push(performance.now() - startedMs);
        await seen;
        paid.push(performance.now() - startedMs);
      }
      events.close();
      const against = { name: "the call's own answer", value: percentile(answered, 0.5) };
      return [rowUnder('payment to paid on screen, p50', 'ms', percentile(paid, 0.5), against, 50)];
    } finally {
      await fixture.close();
    }
  },
};

/** A box that does nothing but publish, for the time of a QoS 1 round trip. */
export async function openSpareBox({ mqttPort }: { mqttPort: number }) {
  const { terminalCode, secret } = SPARE_BOX;
  const login = { clientId: terminalCode, username: terminalCode, password: loginOf(secret) };
  const client = await mqtt.connectAsync(`mqtt://127.0.0.1:${mqttPort}`, { protocolVersion: 4, ...login });
  const presence = `paybox/v1/boxes/${terminalCode}/presence`;
  return {
    publish: () => client.publishAsync(presence, '{}', { qos: 1 }),
    close: () => client.endAsync(),
  };
}

export async function took(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}

/** Reads an event stream. `next` resolves with the next event that matches and arrives from now on. */
export async function watch(url: string) {
  const abort = new AbortController();
  const response = await fetch(url, { signal: abort.signal });
  if (response.body === null) throw new Error('no events');
  const waiting = new Set<(text: string) => void>();
  const reading = (async () => {
    const decoder = new TextDecoder();
    let rest = '';
    for await (const chunk of response.body ?? []) {
      const parts = (rest + decoder.decode(chunk, { stream: true })).split('\n\n');
      rest = parts.pop() ?? '';
      for (const part of parts) for (const look of waiting) look(part);
    }
  })().catch(() => undefined);
  return {
    next: (matches: (text: string) => boolean) =>
      new Promise<void>((resolve) => {
        const look = (text: string) => {
          if (!matches(text)) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
      }),
    close: () => {
      abort.abort();
      void reading;
    },
  };
}
