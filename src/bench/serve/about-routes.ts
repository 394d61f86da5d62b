import { z } from 'zod';
import { capabilitiesNeeded } from '../engine/target.ts';
import { readScenario } from '../scenarios/scenario.ts';
import type { Route, ServerDeps } from './route.ts';
import { scenarioList } from './schemas.ts';

const health = z.strictObject({ ok: z.literal(true), runs: z.int(), rigs: z.int() }).meta({ id: 'Health' });

/** Returns routes that describe the server. `describe` returns the description of all routes. */
export function aboutRoutes(
  deps: ServerDeps,
  counts: () => { runs: number; rigs: number },
  describe: () => object,
): Route[] {
  return [
    {
      method: 'GET',
      path: '/',
      name: 'index',
      summary: 'An overview of the API, with examples',
      answers: { 200: { about: 'for people', type: 'text/plain' } },
      handle: () => ({ status: 200, type: 'text/plain; charset=utf-8', body: INDEX }),
    },
    {
      method: 'GET',
      path: '/healthz',
      name: 'health',
      summary: 'Health check; needs no token',
      answers: { 200: { about: 'it does', schema: health } },
      handle: () => ({ status: 200, json: { ok: true, ...counts() } }),
    },
    {
      method: 'GET',
      path: '/openapi.json',
      name: 'openapi',
      summary: 'This API, to generate clients from',
      answers: { 200: { about: 'OpenAPI 3.1', type: 'application/json' } },
      handle: () => ({ status: 200, json: describe() }),
    },
    {
      method: 'GET',
      path: '/scenarios',
      name: 'listScenarios',
      summary: 'The scenarios that may be run by name',
      answers: { 200: { about: 'by name', schema: scenarioList } },
      handle: async () => {
        const known = [...(await deps.scenarios())];
        const scenarios = await Promise.all(
          known.map(async ([name, path]) => {
            const read = await readScenario(path);
            const { name: title, about = '', boxes } = read;
            return { name, title, about, boxes, needs: [...capabilitiesNeeded(read)] };
          }),
        );
        return { status: 200, json: { scenarios } };
      },
    },
  ];
}

const INDEX = `paybox bench: runs scenarios against payment boxes, and opens rigs to drive them.
All of it as OpenAPI: /openapi.json    Every answer is JSON unless its name says otherwise; refusals are
{ "error": what, "fix": what to do }.    curl -d sends no JSON by itself: add -H content-type:application/json

RUNS  scenarios that are judged from beginning to end, one run at a time
  GET    /scenarios                 what may be run by name
  POST   /runs                      { "scenarios": ["happy-path", { "yaml": "name: Mine\\nsteps: …" }] }
                                    also target, transport, dialect, boxes, seed, gateway, box, probe… as of paybox bench run
  GET    /runs, /runs/{id}          state: queued, running, passed, failed, skipped, missing or aborted
  GET    /runs/{id}/events          server-sent events: begin, step, result, end
  GET    /runs/{id}/junit.xml, /runs/{id}/report.tap, /runs/{id}/report.html
  DELETE /runs/{id}                 aborts it

RIGS  a gateway, boxes and a partner's server that stay up while your own program drives them
  POST   /rigs                    { "target": "process", "boxes": 2, "callbackUrl": "http://127.0.0.1:3000/sync" }
                                    answers addresses and credentials; it ends when nobody asks for 10min ("idle")
  POST   /rigs/{id}/steps         { "push": { "amount": 50000, "content": "DH1" } }
                                    200 done and as expected, 409 not as expected, 422 no step
  POST   /rigs/{id}/reset         as new, at the same addresses: once a test, instead of another rig
  GET    /rigs/{id}/boxes/1/screen.png, /rigs/{id}/boxes/1/screen.txt, /rigs/{id}/boxes/1/status
  GET    /rigs/{id}/callbacks, /rigs/{id}/report.html
  DELETE /rigs/{id}               ends it

TIME  on target process (default of rigs) it is everybody's; on target emulated (default of runs) it is everybody's
between steps, and a step that only waits takes no time: where a program of your own takes part, choose process.
`;
