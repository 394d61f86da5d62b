import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import * as answers from '../../protocol/mock-api.ts';
import type { Caller } from '../access/authorizer.ts';
import { listQuery, wholeNumber } from '../access/requests.ts';
import { accept, refuse } from '../common/result.ts';
import { mayDo } from '../config/roles.ts';
import type { OpenGateway } from '../stages/open-gateway.ts';
import { cancellationOf, tellChanged } from './admin.ts';
import { callbackRoutes } from './callback-routes.ts';
import type { OwnApi } from './own-api.ts';
import { backupRoute, lastBackup, watchRoute } from './stream-routes.ts';
import { trafficRoutes } from './traffic-routes.ts';
import { createViews, sourceView, type Views } from './views.ts';

/** A list has at most this many boxes, more than fit into the gateway's file. */
const BOXES_LISTED_MAX = 10_000;
const boxesQuery = z.object({
  limit: wholeNumber(1, BOXES_LISTED_MAX).default(BOXES_LISTED_MAX),
  after: z.string().optional().describe('the last terminalCode of the page before'),
});
/** The console may show the password of the demo, which is public. It shows no other password. */
const DEMO_PASSWORD = 'demo-secret';

/** Registers the routes for admins below `/_mock`. Returns a function that ends their streams and downloads. */
export function adminRoutes(scope: FastifyInstance, api: OwnApi, open: OpenGateway): () => void {
  const views = createViews(open.stored, open.boxes);
  listRoutes(scope, api, open, views);
  boxRoutes(scope, api, open, views);
  orderRoutes(scope, api, open);
  callbackRoutes(scope, api, open, views);
  trafficRoutes(scope, api, open.world);
  const endStreams = watchRoute(scope, api, open);
  const endDownloads = backupRoute(scope, api, open);
  return () => {
    endStreams();
    endDownloads();
  };
}

function listRoutes(scope: FastifyInstance, api: OwnApi, open: OpenGateway, views: Views): void {
  const { stored, money } = open;
  api.route(scope, {
    method: 'GET',
    path: '/about',
    access: 'look',
    summary: 'What this gateway is, and a box, account and partner to try it with',
    answer: answers.aboutAnswer,
    run: async ({ caller }) => accept({ ...(await about(open, caller)), lastBackupAt: await lastBackup(stored.store) }),
  });
  const list = <Row>(
    path: string,
    row: z.ZodType<Row>,
    read: (limit: number, before?: string) => Promise<Row[]>,
    summary = `List the ${path.slice(1)}, newest first`,
  ) =>
    api.route(scope, {
      ...{ method: 'GET', path, access: 'look', summary },
      query: listQuery,
      answer: z.array(row),
      run: async ({ query: { limit, before } }) => accept(await read(limit, before)),
    });
  list('/orders', answers.orderAnswer, views.orders);
  list('/payments', answers.paymentAnswer, views.payments);
  list(
    '/credits',
    answers.creditAnswer,
    views.credits,
    'List the movements of money that sources told of, newest first',
  );
  api.route(scope, {
    method: 'GET',
    path: '/sources',
    access: 'look',
    summary: 'List the sources of money, and what they told last',
    answer: z.array(answers.sourceAnswer),
    run: async () => accept((await money.sources.catchUp.status()).map(sourceView)),
  });
}

function boxRoutes(scope: FastifyInstance, api: OwnApi, { boxScreen }: OpenGateway, views: Views): void {
  api.route(scope, {
    method: 'GET',
    path: '/boxes',
    access: 'look',
    summary: 'List the boxes, in the order of their codes',
    query: boxesQuery,
    answer: z.array(answers.boxAnswer),
    run: async ({ query }) => accept(await views.boxes(query)),
  });
  api.route(scope, {
    method: 'GET',
    path: '/boxes/:terminalCode',
    access: 'look',
    summary: 'Read a box, and whether it is connected',
    answer: answers.boxAnswer,
    refusals: ['E96'],
    run: async ({ name }) => {
      const box = await views.box(name);
      return box === undefined ? refuse('E96', 'no such box') : accept(box);
    },
  });
  api.route(scope, {
    method: 'GET',
    path: '/boxes/:terminalCode/screen.png',
    access: 'look',
    summary: 'The picture on the screen of the box of paybox up',
    type: 'image/png',
    refusals: ['E96'],
    run: async ({ name }) => {
      const png = boxScreen?.terminalCode === name ? boxScreen.picture() : undefined;
      if (png !== undefined) return accept(Buffer.from(png));
      return refuse('E96', 'the screen of this box is not known here: only that of the box of paybox up is');
    },
  });
}

function orderRoutes(scope: FastifyInstance, api: OwnApi, { boxes: { signer }, money }: OpenGateway): void {
  const { service } = money;
  api.route(scope, {
    method: 'POST',
    path: '/orders/:orderId/cancel',
    access: 'administer',
    audit: 'cancelled',
    isLive: true,
    summary: 'Cancel an unpaid order, by its id or orderId, and take its QR from the box',
    answer: answers.done,
    refusals: ['E96'],
    run: async ({ name, reply }) => {
      const cancelled = await service.cancelOrder(name);
      if (!cancelled.ok) return cancelled;
      tellChanged(reply.request, cancellationOf(cancelled.value, 'orders'));
      return accept(success(''));
    },
  });
  api.route(scope, {
    method: 'POST',
    path: '/orders/:orderId/pay',
    access: 'administer',
    summary: 'Pay an order, by its id or orderId (sandbox); the message is the transactionId',
    answer: answers.done,
    refusals: ['E75', 'E96'],
    run: async ({ name }) => {
      const paid = await service.payOrder(name);
      return paid.ok ? accept(success(paid.value)) : paid;
    },
  });
  api.route(scope, {
    method: 'GET',
    path: '/keys',
    access: 'look',
    summary: 'The id of the key with which messages to boxes are signed',
    answer: z.strictObject({ kid: z.string() }),
    run: async () => accept({ kid: signer.kid }),
  });
  api.route(scope, {
    method: 'POST',
    path: '/keys/rotate',
    access: 'administer',
    audit: 'rotated',
    isLive: true,
    summary: 'Sign messages to boxes with a new key; the message is its id',
    answer: answers.done,
    run: async () => {
      await signer.rotate();
      return accept(success(signer.kid));
    },
  });
}

function success(message: string) {
  return { status: 'SUCCESS', message } as const;
}

/** Returns a linked box, its account and its partner. The commands of a demo use them where their caller names none. */
async function about(
  { world, stored, boxScreen, origin }: OpenGateway,
  { role }: Caller,
): Promise<Omit<answers.About, 'lastBackupAt'>> {
  const { config } = world;
  const { directory } = stored;
  const [linked] = await directory.linkedBoxes(1);
  const [first = ''] = await directory.partners(1);
  const [account] =
    linked === undefined ? await directory.accountsOf(first, 1) : [await directory.account(linked.account ?? '')];
  const partner = await directory.partner(account?.partner ?? first);
  return {
    baseUrl: `${origin()}${config.basePath}`,
    sandbox: config.sandbox,
    mode: config.mode,
    partner:
      partner === undefined
        ? null
        : {
            username: partner.username,
            password: mayDo(role, 'administer') && partner.password === DEMO_PASSWORD ? DEMO_PASSWORD : null,
            hasCallback: partner.callback !== undefined,
          },
    account: account === undefined ? null : await directory.accountOf({ account: account.bankAccount }),
    box: linked === undefined ? null : { terminalCode: linked.terminalCode, serialNumber: linked.serialNumber },
    boxPage: linked !== undefined && linked.terminalCode === boxScreen?.terminalCode ? boxScreen.pageUrl : null,
  };
}
