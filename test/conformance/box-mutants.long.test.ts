import { AsyncLocalStorage } from 'node:async_hooks';
import type { IClientOptions } from 'mqtt';
import { describe, expect, it, vi } from 'vitest';
import { boxChecksNear, brokenClauses, judge } from './box-fixture.ts';
import { MQTT_MUTANTS, type MqttMutant } from './mutants/mqtt.ts';
import { WIRE_MUTANTS } from './mutants/wire.ts';
import { keepOutcomes, MUTANT_TIMEOUT_MS } from './nearby-checks.ts';

const clients = vi.hoisted(() => ({ of: undefined as AsyncLocalStorage<MqttMutant> | undefined }));

vi.mock('mqtt', async (importOriginal) => {
  const real = await importOriginal<typeof import('mqtt')>();
  const connect = (url: string, options: IClientOptions) => {
    const mutant = clients.of?.getStore();
    const client = real.connect(url, mutant?.options?.(options) ?? options);
    mutant?.client?.(client);
    return client;
  };
  return { ...real, connect };
});

clients.of = new AsyncLocalStorage<MqttMutant>();

describe.concurrent('a box that', () => {
  it.for(Object.entries(WIRE_MUTANTS))(
    'the judge fails a box that %s by its clause, and by no other',
    { timeout: MUTANT_TIMEOUT_MS },
    async ([, mutant], { task }) => {
      const without = (['restart', 'slow'] as const).filter((need) => mutant.needs?.includes(need) !== true);
      const results = await judge(mutant, {
        without,
        checks: boxChecksNear(mutant.breaks),
        ...(mutant.transport && { transport: mutant.transport }),
      });
      const reasons = keepOutcomes(task, results);
      expect(brokenClauses(results), reasons).toEqual(mutant.breaks);
    },
  );

  it.for(Object.entries(MQTT_MUTANTS))(
    'the judge fails a box over MQTT that %s by its clause, and by no other',
    { timeout: MUTANT_TIMEOUT_MS },
    async ([, mutant], { task }) => {
      const { breaks } = mutant;
      const results = await clients.of?.run(mutant, () =>
        judge({ breaks }, { without: ['restart', 'slow'], checks: boxChecksNear(breaks) }),
      );
      const reasons = keepOutcomes(task, results ?? []);
      expect(brokenClauses(results ?? []), reasons).toEqual(breaks);
    },
  );
});
