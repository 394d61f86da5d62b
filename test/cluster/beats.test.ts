import { expect, it } from 'vitest';
import { Beats } from '../../src/gateway/cluster/beats.ts';
import type { ConsoleEvents } from '../../src/gateway/cluster/console-events.ts';
import type { NewsDesk } from '../../src/gateway/cluster/news.ts';
import type { Peers } from '../../src/gateway/cluster/peers.ts';
import { OPENING_MAX, Shards } from '../../src/gateway/cluster/shards.ts';
import type { Gateway } from '../../src/gateway/gateway.ts';
import type { ClusterDatabase, ClusterView } from '../../src/gateway/store/engines/cluster-database.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { only } from '../gateway/stage-records.ts';
import { keptLog } from '../support/kept-log.ts';
import { eventually } from '../support/net.ts';

const MEMBER = { id: 'a', url: 'http://a', file: '', alike: {} };
const VIEW: ClusterView = { members: [{ ...MEMBER, leaving: false }], holders: new Map() };
/** Parts of a member that take no part here. */
const IDLE = {
  peers: only<Peers>({ see: () => undefined }),
  events: only<ConsoleEvents>({ see: () => undefined }),
  desk: only<NewsDesk>({ flush: async () => undefined }),
};

/** The shards of a member that has all of them; `opening` ends the opening of each. */
function shardsOf(count: number, changed: () => void = () => undefined) {
  const opening = new Map<number, () => void>();
  const { log, lines } = keptLog();
  const gateway = { heed: async () => undefined, close: async () => undefined } as unknown as Gateway;
  const shards = new Shards({
    ...{ clock: systemClock, log, member: MEMBER.id, count, changed },
    database: only<ClusterDatabase>({ endHolder: async () => undefined }),
    start: (index) => new Promise((started) => opening.set(index, () => started(gateway))),
  });
  const openAll = () => {
    for (const opened of opening.values()) opened();
    opening.clear();
  };
  return { shards, opening, openAll, log, lines };
}

it('a member reports that news may have been missed after each lost or late heartbeat, and only then', async () => {
  const answers = ['first', 'fine', 'lost', 'lost', 'fine', 'fine', 'late', 'fine', 'emptied', 'fine', 'fine'] as const;
  let [beaten, nowMs] = [0, 0];
  const clock = {
    ...systemClock,
    monotonicMs: () => nowMs,
    sleep: async (ms: number) => {
      nowMs += ms;
      if (beaten === answers.length) void beats.end();
      await systemClock.sleep(0);
    },
  };
  const missed: number[] = [];
  const { shards, log } = shardsOf(0);
  const beat = async () => {
    const answer = answers[beaten];
    beaten += 1;
    if (answer === 'lost') throw new Error('the server is away');
    if (answer === 'late') nowMs += 3_600_000;
    return { ...VIEW, isEmptied: answer === 'emptied' };
  };
  const mayHaveMissed = () => void missed.push(beaten - 1);
  const beats: Beats = new Beats({
    ...IDLE,
    clock,
    log,
    member: MEMBER,
    database: only<ClusterDatabase>({ beat }),
    shards,
    mayHaveMissed,
  });
  await beats.begin(0);
  await eventually('the last beat', () => beaten === answers.length);
  await beats.end();
  expect(missed).toEqual([0, 4, 6, 9]);
});

it('a member opens many shards a few at a time, sends heartbeats meanwhile, and is ready once all are open', async () => {
  const count = 3 * OPENING_MAX + 1;
  const { shards, opening, openAll, log } = shardsOf(count, () => beats.soon());
  let beaten = 0;
  const beat = async () => {
    beaten += 1;
    return VIEW;
  };
  const mayHaveMissed = () => undefined;
  const deps = {
    ...IDLE,
    clock: systemClock,
    log,
    member: MEMBER,
    database: only<ClusterDatabase>({ beat }),
    shards,
    mayHaveMissed,
  };
  const beats: Beats = new Beats(deps);
  let isReady = false;
  const begun = beats.begin(60_000).then(() => {
    isReady = true;
  });
  for (let opened = 0; opened < count; opened = shards.all().length) {
    const next = Math.min(OPENING_MAX, count - opened);
    await eventually('the next shards to open', () => opening.size === next);
    const before = beaten;
    await eventually('two more beats', () => beaten > before + 1);
    expect([opening.size, isReady]).toEqual([next, false]);
    openAll();
    await eventually('the shards to run', () => shards.all().length === opened + next);
  }
  await begun;
  await beats.end();
  expect(shards.all()).toHaveLength(count);
});
