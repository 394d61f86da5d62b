import { expect, it } from 'vitest';
import { RestartingGateway } from '../../src/commands/actions/restarting-gateway.ts';
import type { Gateway } from '../../src/gateway/gateway.ts';
import { PayboxError } from '../../src/lib/errors.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { keptLog } from '../support/kept-log.ts';

/** A gateway that others take over when the test says so. What happens to it is noted. */
function gatewayNamed(name: string, happened: string[]) {
  const superseded = Promise.withResolvers<PayboxError>();
  const gateway: Gateway = {
    ...{ origin: 'http://127.0.0.1:1', baseUrl: 'http://127.0.0.1:1/vqr', mqttUrl: undefined },
    superseded: superseded.promise,
    unready: async () => undefined,
    close: async () => void happened.push(`${name} closed`),
  };
  return {
    gateway,
    supersede: () => superseded.resolve(new PayboxError('STORAGE_FAULT', 'taken over', { severity: 'fatal' })),
  };
}

/** A program whose starts come out in this turn: a gateway, or the reason why there is none. */
function program(...starts: (Gateway | string)[]) {
  const happened: string[] = [];
  const clock = new VirtualClock();
  const { log, lines } = keptLog();
  const first = gatewayNamed('first', happened);
  const second = gatewayNamed('second', happened);
  const third = gatewayNamed('third', happened);
  const later = [second, third];
  const start = async () => {
    const next = starts.shift() ?? later.shift()?.gateway ?? 'no more gateways';
    if (typeof next === 'string') throw new Error(next);
    happened.push('started');
    return next;
  };
  const away = async (reason: string) => void happened.push(`away: ${reason}`);
  const ready = async () => void happened.push('ready');
  const running = new RestartingGateway(first.gateway, { clock, log, start, away, ready });
  return { running, clock, lines, happened, first, second };
}

it('STO-2 a gateway of several whose work others have taken over is closed, and starts again in the same process', async () => {
  const { running, clock, lines, happened, first, second } = program();
  first.supersede();
  await clock.advance(0);
  expect(happened).toEqual(['away: taken over', 'first closed', 'started', 'ready']);
  expect(lines).toMatchObject([{ event: 'gateway-superseded', code: 'STORAGE_FAULT', reason: 'taken over' }]);
  second.supersede();
  await clock.advance(0);
  expect(happened.slice(4)).toEqual(['away: taken over', 'second closed', 'started', 'ready']);
  await running.close(1_000);
  expect(happened.at(-1)).toBe('third closed');
});

it('STO-2 a start that fails is tried again after bounded waits, and the log says why', async () => {
  const { running, clock, lines, happened, first } = program(...Array.from({ length: 6 }, () => 'no database'));
  first.supersede();
  await clock.advance(30_000);
  const waits = lines.filter(({ event }) => event === 'restart-failed').map(({ againInMs }) => againInMs);
  expect(waits).toEqual([500, 1_000, 2_000, 4_000, 5_000, 5_000]);
  expect(lines.at(-1)).toMatchObject({ reason: 'no database' });
  expect(happened.slice(2)).toEqual(['started', 'ready']);
  await running.close(1_000);
});

it('STO-8 a gateway that is stopped while it waits for its next start ends at once', async () => {
  const { running, clock, happened, first } = program('no database', 'no database', 'no database');
  first.supersede();
  await clock.advance(600);
  await running.close(1_000);
  await clock.advance(60_000);
  expect(happened).toEqual(['away: taken over', 'first closed']);
});

it('STO-8 a gateway that is stopped is closed once, and does not start again', async () => {
  const { running, clock, happened, first } = program();
  await running.close(1_000);
  first.supersede();
  await clock.advance(60_000);
  expect(happened).toEqual(['first closed']);
});
