import { AsyncLocalStorage } from 'node:async_hooks';
import type { ConnectionOptions } from 'node:tls';
import { describe, expect, it, vi } from 'vitest';
import { newAuthority, tlsIdentitiesOf } from '../../src/commands/actions/bench-tls.ts';
import { boxChecksNear, brokenClauses, judge } from './box-fixture.ts';
import { TLS_MUTANTS } from './mutants/tls.ts';
import { keepOutcomes, MUTANT_TIMEOUT_MS } from './nearby-checks.ts';

const peers = vi.hoisted(() => ({ of: undefined as AsyncLocalStorage<ConnectionOptions> | undefined }));

vi.mock('../../src/device/agent/transports/tls.ts', async (importOriginal) => {
  const real = await importOriginal<typeof import('../../src/device/agent/transports/tls.ts')>();
  const connectionTls: typeof real.connectionTls = (options) =>
    Object.assign(real.connectionTls(options), peers.of?.getStore());
  return { ...real, connectionTls };
});

peers.of = new AsyncLocalStorage<ConnectionOptions>();

/** Keys are slow to make: all tests use these. */
const identities = newAuthority().then((authority) => tlsIdentitiesOf(authority, '127.0.0.1'));

describe.concurrent('a box that', () => {
  it.for(
    (['mqtt', 'http'] as const).flatMap((transport) =>
      Object.entries(TLS_MUTANTS).map((it) => [transport, ...it] as const),
    ),
  )(
    'over %s %s is told so by its clause, and by no other',
    { timeout: MUTANT_TIMEOUT_MS },
    async ([transport, , { breaks, tls }], { task }) => {
      const judging = {
        transport,
        tls: await identities,
        without: ['restart', 'slow', 'screen', 'pages'],
        checks: boxChecksNear(breaks),
      } as const;
      const results = await peers.of?.run(tls, () => judge({ breaks }, judging));
      const reasons = keepOutcomes(task, results ?? []);
      expect(brokenClauses(results ?? []), reasons).toEqual(breaks);
    },
  );
});
