import type { z } from 'zod';
import { describeRoutes, type RouteDoc } from '../../lib/route.ts';
import { CALL_REFUSALS } from '../../protocol/codes.ts';
import { LIMITS } from '../../protocol/fields.ts';
import {
  cancelQrRequest,
  checkOrderRequest,
  checkOrderResponse,
  generateRequest,
  generateResponse,
  PATHS,
  type StatusResponse,
  sendQrRequest,
  statusResponse,
  testCallbackRequest,
  tokenResponse,
  transactionSync,
  transactionSyncReply,
} from '../../protocol/http-api.ts';
import { failure } from '../access/own-route.ts';
import type { Partner } from '../common/directory.ts';
import { accept, type Result } from '../common/result.ts';
import type { CallNotes } from '../partner/call-notes.ts';
import type { PartnerCalls } from '../partner/partner-calls.ts';

/** A call of a partner with a bearer token. The gateway serves and describes it from this value alone. */
export interface ServiceCall {
  name: Exclude<keyof typeof PATHS, 'token'>;
  summary: string;
  body: z.ZodObject;
  answer: z.ZodType;
  run(partner: Partner, json: unknown, call: { origin: string; notes: CallNotes }): Promise<Result<unknown>>;
}

/** Returns every call of a partner but that for a token. */
export function serviceCalls(calls: PartnerCalls): ServiceCall[] {
  const checkOrder = {
    summary: 'The state of orders',
    body: checkOrderRequest,
    answer: checkOrderResponse,
    run: (partner, json) => calls.checkOrder(partner, json),
  } as const satisfies Omit<ServiceCall, 'name'>;
  return [
    {
      name: 'generate',
      summary: 'Generate a payment QR',
      body: generateRequest,
      answer: generateResponse,
      run: (partner, json, call) => calls.generate(partner, json, call),
    },
    {
      name: 'sendQr',
      summary: 'Push a QR to a payment box',
      body: sendQrRequest,
      answer: statusResponse,
      run: async (partner, json, call) => statusOf(await calls.sendQr(partner, json, call)),
    },
    {
      name: 'testCallback',
      summary: 'Simulate a completed payment (sandbox)',
      body: testCallbackRequest,
      answer: statusResponse,
      run: async (partner, json, { notes }) => statusOf(await calls.testCallback(partner, json, notes)),
    },
    { name: 'checkOrder', ...checkOrder },
    { name: 'checkEcommerceOrder', ...checkOrder },
    {
      name: 'cancelQr',
      summary: 'Cancel an unpaid order',
      body: cancelQrRequest,
      answer: statusResponse,
      run: async (partner, json) => statusOf(await calls.cancelQr(partner, json)),
    },
  ];
}

function statusOf(result: Result<string | undefined>): Result<StatusResponse> {
  return result.ok ? accept({ status: 'SUCCESS', message: result.value ?? '' }) : result;
}

const TOKEN: RouteDoc = {
  method: 'POST',
  path: PATHS.token,
  name: 'token',
  summary: 'Get a bearer token of 300 seconds',
  description: 'The body is not read.',
  security: [{ basic: [] }],
  answers: {
    200: { about: 'the token', schema: tokenResponse },
    401: failure(['E74'], false),
    429: failure(['E74'], false, 'E74: too many wrong logins; see Retry-After'),
  },
};

const TRANSACTION_SYNC: RouteDoc = {
  method: 'POST',
  path: 'transactionSync',
  name: 'transactionSync',
  summary: 'A payment, sent to the endpoint that the partner configured',
  isWebhook: true,
  body: transactionSync,
  isBodyRequired: true,
  answers: { 200: { about: 'received and processed', schema: transactionSyncReply } },
};

/**
 * Returns the OpenAPI 3.1 document of the service, whose calls are below `baseUrl`, and of the routes below `/_mock`. Callers of
 * the latter send a token (security scheme `admin`).
 */
export function describeService(baseUrl: string, calls: readonly ServiceCall[], mock: readonly RouteDoc[]): object {
  const service = describeRoutes([TOKEN, ...calls.map(described)]);
  const own = describeRoutes(mock);
  const webhooks = describeRoutes([TRANSACTION_SYNC]);
  const ownPaths = Object.entries(own.paths).map(([path, it]) => [path, { servers: [{ url: '/' }], ...Object(it) }]);
  const [basic, bearer] = ['basic', 'bearer'].map((scheme) => ({ type: 'http', scheme }));
  return {
    openapi: '3.1.0',
    info: {
      title: 'Payment QR service (mock)',
      version: '1',
      description: 'Token, QR generation, push to a payment box, and the sandbox test callback.',
    },
    servers: [{ url: baseUrl }],
    paths: { ...service.paths, ...Object.fromEntries(ownPaths) },
    webhooks: webhooks.paths,
    components: {
      securitySchemes: { basic, bearer, admin: bearer },
      schemas: { ...service.schemas, ...own.schemas, ...webhooks.schemas },
    },
  };
}

function described({ name, summary, body, answer }: ServiceCall): RouteDoc {
  const { httpBodyBytesMax } = LIMITS;
  return {
    ...{ method: 'POST', path: PATHS[name], name, summary, body, isBodyRequired: true },
    security: [{ bearer: [] }],
    answers: {
      200: { about: 'done', schema: answer },
      400: failure(CALL_REFUSALS[name], false),
      401: failure(['E74'], false),
      413: failure(['E46'], false, `E46: the body is longer than ${httpBodyBytesMax} bytes`),
      415: failure(['E46'], false, 'E46: the body is not application/json'),
      500: failure(['E05'], false),
    },
  };
}
