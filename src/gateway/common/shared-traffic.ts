import { type WireEntry, type WirePage, wirePage } from '../../protocol/wire.ts';
import { NOTED_MAX } from './traffic-log.ts';
import type { World } from './world.ts';

/** A gateway that does not answer within this time is left out. Its entries come with the next page. */
const ANSWER_TIMEOUT_MS = 2_000;
/** The log of all gateways never begins again, as the log of one does. */
const RUN_OF_ALL = 'all gateways';

type Traffic = Pick<World, 'trafficLog' | 'machine' | 'place'>;

/** Where a reader is: the number of the last entry that it has of each run, or of all. */
type Position = number | ReadonlyMap<string, number>;

/** Reads a position: a number, or `run:number,…` for several gateways. */
function positionIn(since: string): Position {
  if (!since.includes(':')) return Number(since);
  const positions = since.split(',').map((it) => it.split(':'));
  return new Map(positions.map(([run = '', n]) => [run, Number(n)]));
}

function numberAt(position: Position, run: string): number {
  return typeof position === 'number' ? position : (position.get(run) ?? 0);
}

/** Returns the entries after `since`, oldest first, of all gateways of the database. */
export async function trafficSince(traffic: Traffic, since: string, limit: number): Promise<WirePage> {
  const { trafficLog, place, machine } = traffic;
  const position = positionIn(since);
  if (place.sharing === undefined) return trafficLog.since(numberAt(position, place.run), limit);
  const pages = await pagesOfAll(traffic, (run) => ({ since: numberAt(position, run), limit }));
  const all = pages.flatMap(({ run, page }) => page.entries.map((entry) => ({ run, entry })));
  const taken = all.toSorted((a, b) => a.entry.upMs - b.entry.upMs).slice(0, limit);
  const next = pages.map(({ run, page }) => {
    const own = taken.filter((it) => it.run === run);
    if (own.length === page.entries.length) return { run, n: Number(page.next), lost: page.lost };
    const last = own.at(-1)?.entry.n;
    return { run, n: last ?? numberAt(position, run), lost: last === undefined ? 0 : page.lost };
  });
  return {
    run: RUN_OF_ALL,
    entries: taken.map(({ entry }) => entry),
    next: [...next.map(({ run, n }) => `${run}:${n}`), ...silentIn(position, pages, place.others())].join(','),
    lost: next.reduce((sum, { lost }) => sum + lost, 0),
    upMs: machine.wallMs(),
  };
}

/** Returns the position at gateways that live and have not answered. */
function silentIn(position: Position, pages: readonly { run: string }[], others: readonly string[]): string[] {
  const silent = others.filter((run) => !pages.some((it) => it.run === run));
  return silent.map((run) => `${run}:${numberAt(position, run)}`);
}

/** Returns the calls with a note at all gateways of the database, newest first. */
export async function notedCalls(traffic: Traffic): Promise<WireEntry[]> {
  const pages = await pagesOfAll(traffic, () => ({ since: null, limit: NOTED_MAX }));
  const all = pages.flatMap(({ page }) => page.entries);
  return all.toSorted((a, b) => b.upMs - a.upMs).slice(0, NOTED_MAX);
}

/**
 * Returns the entries of this gateway for another one. Their times are those of the calendar of the database, which is
 * the same at all. Without `since` they are the calls with a note.
 */
export function ownTraffic(
  { trafficLog, machine }: Pick<Traffic, 'trafficLog' | 'machine'>,
  { since, limit }: { since: number | null; limit: number },
): WirePage {
  const page = trafficLog.since(since ?? 0, since === null ? 0 : limit);
  const entries = since === null ? trafficLog.noted() : page.entries;
  const nowMs = machine.wallMs();
  const dated = entries.map((it) => ({ ...it, upMs: it.upMs + nowMs - page.upMs }));
  return { ...page, entries: dated, upMs: nowMs };
}

async function pagesOfAll(
  traffic: Traffic,
  questionFor: (run: string) => { since: number | null; limit: number },
): Promise<{ run: string; page: WirePage }[]> {
  const { place } = traffic;
  const others = place.others().map(async (run) => {
    const answer = await place.ask(run, 'traffic', questionFor(run), ANSWER_TIMEOUT_MS);
    const page = wirePage.safeParse(answer);
    return page.success ? [{ run, page: page.data }] : [];
  });
  const own = { run: place.run, page: ownTraffic(traffic, questionFor(place.run)) };
  return [own, ...(await Promise.all(others)).flat()];
}
