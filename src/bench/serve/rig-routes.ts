import { MissingPeerError } from '../../lib/errors.ts';
import { step as stepRequest } from '../scenarios/steps.ts';
import type { Rig } from './rig.ts';
import type { Rigs } from './rigs.ts';
import { type Answer, Refusal, type Route, type RouteRequest } from './route.ts';
import { callbackList, failure, rigList, rigRequest, rigView, stepAnswer } from './schemas.ts';

const GONE = { about: 'it has ended, and why', schema: failure };
const UNKNOWN = { about: 'there is no such rig or box', schema: failure };
const OFF = { about: 'the box or the gateway does not answer', schema: failure };

/** Returns the routes of rigs: a gateway and boxes that stay up while a caller drives them. */
export function rigRoutes(rigs: Rigs): Route[] {
  return [
    {
      method: 'GET',
      path: '/rigs',
      name: 'listRigs',
      summary: 'The rigs that are open',
      answers: { 200: { about: 'the oldest first', schema: rigList } },
      handle: () => ({ status: 200, json: { rigs: rigs.all().map((rig) => rig.view()) } }),
    },
    {
      method: 'POST',
      path: '/rigs',
      name: 'openRig',
      summary: "Open a gateway, boxes and a partner's server; answers once they are ready",
      body: rigRequest,
      answers: {
        201: { about: 'ready, with its addresses and credentials', schema: rigView },
        503: { about: 'it did not start, or the running gateway or box does not answer', schema: failure },
      },
      handle: async ({ body, signal }) => {
        const rig = (await rigs.open(body, signal)).view();
        return { status: 201, json: rig, headers: { location: rig.links.self } };
      },
    },
    ...routesOfOne(rigs),
  ];
}

function routesOfOne(rigs: Rigs): Route[] {
  const of = (work: (rig: Rig, asked: RouteRequest) => Answer | Promise<Answer>) => (asked: RouteRequest) => {
    const rig = rigs.get(asked.params.id ?? '');
    return rig.use(() => work(rig, asked));
  };
  return [
    {
      method: 'GET',
      path: '/rigs/:id',
      name: 'getRig',
      summary: 'One rig; like every request about it, this restarts its idle time',
      answers: { 200: { about: 'as it is', schema: rigView }, 404: UNKNOWN, 410: GONE },
      handle: of((rig) => ({ status: 200, json: rig.view() })),
    },
    {
      method: 'DELETE',
      path: '/rigs/:id',
      name: 'endRig',
      summary: 'End a rig; answers once all its parts have ended',
      answers: { 204: { about: 'it has ended, or had before' }, 404: UNKNOWN },
      handle: async ({ params }) => {
        await rigs.end(params.id ?? '', 'by DELETE');
        return { status: 204, type: 'text/plain', body: '' };
      },
    },
    {
      method: 'POST',
      path: '/rigs/:id/steps',
      name: 'runStep',
      summary: 'Run one step of a scenario, for example { "push": { "amount": 50000, "content": "DH1" } }',
      body: stepRequest,
      answers: {
        200: { about: 'the step ran, and its result is as expected', schema: stepAnswer },
        404: UNKNOWN,
        409: {
          about: 'the step ran, but its result is not as expected: `error` says what was expected and what was found',
          schema: failure,
        },
        410: GONE,
      },
      handle: of(async (rig, { body, signal }) => ({ status: 200, json: await rig.step(body, signal) })),
    },
    {
      method: 'POST',
      path: '/rigs/:id/reset',
      name: 'resetRig',
      summary:
        'Forget all orders, payments, callbacks, faults and variables, between two tests; addresses and credentials stay',
      answers: {
        200: { about: 'as new', schema: rigView },
        404: UNKNOWN,
        410: GONE,
        422: { about: 'its gateway and boxes ran before it', schema: failure },
        503: { about: 'it did not start again', schema: failure },
      },
      handle: of(async (rig) => {
        await rig.reset();
        return { status: 200, json: rig.view() };
      }),
    },
    {
      method: 'GET',
      path: '/rigs/:id/callbacks',
      name: 'listCallbacks',
      summary: 'The newest callbacks: those the gateway lists, and those the partner received',
      answers: { 200: { about: 'the newest', schema: callbackList }, 404: UNKNOWN, 410: GONE, 503: OFF },
      handle: of((rig) => reached(rig, async () => ({ status: 200, json: await rig.callbacks() }))),
    },
    {
      method: 'GET',
      path: '/rigs/:id/report.html',
      name: 'rigReport',
      summary: 'The report so far',
      answers: { 200: { about: 'a page', type: 'text/html' }, 404: UNKNOWN, 410: GONE },
      handle: of(async (rig) => ({ status: 200, type: 'text/html; charset=utf-8', body: await rig.report() })),
    },
    ...boxRoutes(of),
  ];
}

function boxRoutes(
  of: (work: (rig: Rig, asked: RouteRequest) => Promise<Answer>) => (asked: RouteRequest) => Promise<Answer>,
): Route[] {
  const route = (
    name: string,
    path: string,
    type: string,
    look: (rig: Rig, box: string) => Promise<Answer>,
  ): Route => ({
    method: 'GET',
    path: `/rigs/:id/boxes/:number/${path}`,
    name,
    summary: `${path} of a box; the first is number 1`,
    answers: { 200: { about: 'as it is', type }, 404: UNKNOWN, 410: GONE, 503: OFF },
    handle: of((rig, { params }) => reached(rig, () => look(rig, params.number ?? ''))),
  });
  return [
    route('boxScreen', 'screen.png', 'image/png', async (rig, box) => {
      const body = await rig.picture(box);
      if (body === undefined) throw new Refusal(503, 'nothing is on the screen yet', 'ask again');
      return { status: 200, type: body[0] === JPEG_START ? 'image/jpeg' : 'image/png', body };
    }),
    route('boxText', 'screen.txt', 'text/plain', async (rig, box) => {
      return { status: 200, type: 'text/plain; charset=utf-8', body: await rig.box(box).text() };
    }),
    route('boxStatus', 'status', 'application/json', async (rig, box) => {
      return { status: 200, json: await rig.box(box).status() };
    }),
  ];
}

/** The first byte of a JPEG file, from a camera probe. */
const JPEG_START = 0xff;

/** Reads something in real time. The answer says that a part is off; that is not the caller's error. */
async function reached(rig: Rig, look: () => Promise<Answer>): Promise<Answer> {
  try {
    return await rig.inRealTime(look);
  } catch (error) {
    if (!(error instanceof MissingPeerError)) throw error;
    throw new Refusal(503, error.message, 'it is off, by a fault or because it has ended');
  }
}
