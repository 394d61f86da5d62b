import { describe, expect, it, onTestFinished } from 'vitest';
import type { TargetKind } from '../../src/bench/engine/target.ts';
import { ChannelServer } from '../../src/bench/serve/channel.ts';
import { withBoxes } from '../../src/commands/actions/bench-target.ts';
import { MissingPeerError } from '../../src/lib/errors.ts';
import { payboxToEnd } from '../support/processes.ts';
import { emulated, SEED } from './setup.ts';

function channel(kind: () => TargetKind = emulated): ChannelServer {
  const server = new ChannelServer({
    targetOf: async () => kind(),
    scenarios: async () => new Map(),
    withBoxes,
    anySeed: () => SEED,
    probes: [],
  });
  onTestFinished(() => server.close('the test is over'));
  return server;
}

const EMULATED = { target: 'emulated' };
const TAKEN = 'http.port: port 11000 is already in use on 127.0.0.1';

/** Boxes whose port is taken at the first `times` starts, and how often they were started. */
function unlucky(times: number): { kind: () => TargetKind; starts: () => number } {
  let starts = 0;
  const kind = emulated();
  const open: TargetKind['open'] = async (need) => {
    starts += 1;
    if (starts <= times) throw new MissingPeerError(TAKEN, 'choose another');
    return kind.open(need);
  };
  return { kind: () => ({ ...kind, open }), starts: () => starts };
}

describe('the channel of the library', () => {
  it('opens a rig, runs steps, and shows the screen of one that fails', async () => {
    const server = channel();
    expect(await server.answer({ id: 1, ask: 'open', body: EMULATED })).toMatchObject({
      id: 1,
      result: { id: 'rig-1' },
    });
    const step = (id: number, body: unknown) => server.answer({ id, ask: 'step', rig: 'rig-1', body });
    expect(await step(2, { push: { amount: 1_000, content: 'A' } })).toMatchObject({
      id: 2,
      result: { result: { answer: 'SUCCESS' } },
    });
    expect(await step(3, { expect: { state: 'paid', within: '100ms' } })).toEqual({
      id: 3,
      failed: {
        message: 'VVB000001: state: expected "paid", is "showing", after 100ms',
        expected: '"paid"',
        actual: '"showing"',
        screen: expect.stringMatching(/^iVBORw0KGgo/),
      },
    });
    expect(await server.answer({ id: 4, ask: 'close', rig: 'rig-1' })).toEqual({ id: 4, result: null });
    expect(await server.answer({ id: 5, ask: 'status', rig: 'rig-1' })).toMatchObject({
      id: 5,
      refused: { message: 'rig-1 has ended: it was closed' },
    });
  });

  it('answers whatever has a number, so that nobody waits for ever', async () => {
    const server = channel();
    expect(await server.answer({ id: 7, ask: 'dance' })).toMatchObject({
      id: 7,
      refused: { message: expect.stringContaining('does not know') },
    });
    for (const message of [undefined, 'text', { countsSignals: true }])
      expect(await server.answer(message)).toBeUndefined();
  });

  it('opens again where another program has taken a port, three times at most', async () => {
    const twice = unlucky(2);
    expect(await channel(twice.kind).answer({ id: 1, ask: 'open', body: EMULATED })).toHaveProperty('result');
    expect(twice.starts()).toBe(3);
    const always = unlucky(9);
    const answer = await channel(always.kind).answer({ id: 1, ask: 'open', body: EMULATED });
    expect(answer).toMatchObject({ refused: { message: expect.stringContaining(TAKEN) } });
    expect(always.starts()).toBe(3);
  });

  it('is refused where no program has started it', async () => {
    const { code, output } = await payboxToEnd('bench', 'serve', '--channel');
    expect([code, output]).toEqual([2, expect.stringMatching(/^paybox: --channel: no program has started this one/)]);
  });
});
