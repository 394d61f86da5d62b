import { junitOf } from '../engine/reports/junit.ts';
import { pageOf } from '../engine/reports/page.ts';
import { tapOf } from '../engine/reports/tap.ts';
import { runOptions } from './orders.ts';
import { Refusal, type Route, type RouteRequest, type ServerDeps } from './route.ts';
import type { Run, Runs } from './runs.ts';
import { failure, runList, runRequest, runView } from './schemas.ts';

const NOT_OVER = { about: 'it is not over', schema: failure };
const UNKNOWN = { about: 'there is no such run, or it was forgotten', schema: failure };

/** Returns the routes of runs: scenarios judged from start to end. */
export function runRoutes(runs: Runs, deps: ServerDeps): Route[] {
  const runOf = ({ params }: RouteRequest) => runs.get(params.id ?? '');
  return [
    {
      method: 'GET',
      path: '/runs',
      name: 'listRuns',
      summary: 'The runs of this server, the oldest first',
      answers: { 200: { about: 'queued, running, and the newest finished runs', schema: runList } },
      handle: () => ({ status: 200, json: { runs: runs.all().map((run) => run.view()) } }),
    },
    {
      method: 'POST',
      path: '/runs',
      name: 'startRun',
      summary: 'Run scenarios, by name or as text',
      body: runRequest,
      answers: { 201: { about: 'it is queued or running', schema: runView } },
      handle: async ({ body }) => {
        runs.assertRoom();
        const id = runs.nextId();
        const run = runs.add(id, await runOptions(body, id, deps)).view();
        return { status: 201, json: run, headers: { location: run.links.self } };
      },
    },
    {
      method: 'GET',
      path: '/runs/:id',
      name: 'getRun',
      summary: 'One run, with its current step',
      answers: { 200: { about: 'as it is', schema: runView }, 404: UNKNOWN },
      handle: (asked) => ({ status: 200, json: runOf(asked).view() }),
    },
    {
      method: 'DELETE',
      path: '/runs/:id',
      name: 'abortRun',
      summary: 'Abort a run; answers once all its parts have ended',
      answers: {
        200: { about: 'the run as it ended; a run that was over is unchanged', schema: runView },
        404: UNKNOWN,
      },
      handle: async (asked) => {
        const run = runOf(asked);
        await run.abort('aborted by DELETE');
        return { status: 200, json: run.view() };
      },
    },
    {
      method: 'GET',
      path: '/runs/:id/events',
      name: 'followRun',
      summary: 'Follow a run from its beginning, or from Last-Event-ID on, until it is over',
      answers: {
        200: { about: 'events begin, step and result of each scenario, then end', type: 'text/event-stream' },
        204: { about: 'the run is over and every event was sent' },
        404: UNKNOWN,
      },
      handle: (asked) => {
        const run = runOf(asked);
        const last = Number(asked.headers['last-event-id'] ?? 0);
        const afterId = Number.isSafeInteger(last) ? last : 0;
        // A browser reconnects after a stream ends unless it gets 204.
        if (run.isOver && afterId >= run.lastEventId) return { status: 204, type: 'text/plain', body: '' };
        return { status: 200, follow: run.follow(afterId) };
      },
    },
    ...reportRoutes(runOf),
  ];
}

function reportRoutes(runOf: (asked: RouteRequest) => Run): Route[] {
  const over = (asked: RouteRequest) => {
    const run = runOf(asked);
    if (run.isOver) return run;
    throw new Refusal(409, `${run.id} is ${run.view().state}`, `wait for it: ${run.view().links.events}`);
  };
  const report = (name: string, file: string, type: string, about: string, write: (run: Run) => string): Route => ({
    method: 'GET',
    path: `/runs/:id/${file}`,
    name,
    summary: about,
    answers: { 200: { about, type }, 404: UNKNOWN, 409: NOT_OVER },
    handle: (asked) => ({ status: 200, type: `${type}; charset=utf-8`, body: write(over(asked)) }),
  });
  return [
    report('runJunit', 'junit.xml', 'application/xml', 'Verdicts as JUnit XML', (run) =>
      junitOf(run.allResults, { startedAtMs: run.createdAtMs }),
    ),
    report('runTap', 'report.tap', 'text/plain', 'Verdicts as TAP 14', (run) => tapOf(run.allResults)),
    report(
      'runReport',
      'report.html',
      'text/html',
      'The transcript: timelines, screens, messages and latencies',
      (run) => pageOf(run.allResults, { startedAtMs: run.createdAtMs }),
    ),
  ];
}
