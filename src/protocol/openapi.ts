import { z } from 'zod';
import { describeRoutes, type RouteDoc } from '../lib/route.ts';
import { CODES, type Code } from './codes.ts';
import { LIMITS } from './fields.ts';
import {
  cancelQrRequest,
  checkOrderRequest,
  checkOrderResponse,
  generateRequest,
  generateResponse,
  PATHS,
  REASON_HEADER,
  sendQrRequest,
  statusResponse,
  testCallbackRequest,
  tokenResponse,
  transactionSync,
  transactionSyncReply,
} from './http-api.ts';

const SCHEMAS = {
  TokenResponse: tokenResponse,
  GenerateRequest: generateRequest,
  GenerateResponse: generateResponse,
  SendQrRequest: sendQrRequest,
  TestCallbackRequest: testCallbackRequest,
  CheckOrderRequest: checkOrderRequest,
  CheckOrderResponse: checkOrderResponse,
  CancelQrRequest: cancelQrRequest,
  StatusResponse: statusResponse,
  TransactionSync: transactionSync,
  TransactionSyncReply: transactionSyncReply,
};

const CHECK_REFUSALS = ['E46', 'E39', 'E77', 'E95', 'E96'] as const;

/** Codes of each endpoint, in the order of its clause (PROTOCOL.md, clauses GEN-2, SND-2, CBK-2, CHK-2 and CAN-2). */
const REFUSALS = {
  generate: ['E46', 'E02', 'E03', 'E10', 'E24', 'E26', 'E34', 'E09', 'E35', 'QR_NOT_MADE', 'FAULT_UNKNOWN'],
  sendQr: [
    ...['E46', 'E02', 'E39', 'E36', 'E77', 'E24', 'E51', 'E35', 'QR_INVALID', 'QR_MISMATCH', 'QR_STATIC'],
    ...[
      'QR_ENDED',
      'BOX_CONFIRMS_NOTHING',
      'BOX_OFFLINE',
      'BOX_TIMEOUT',
      'QR_TOO_DENSE',
      'DISPLAY_FAULT',
      'STORAGE_FAULT',
      'REPLACED',
      'WITHDRAWN',
      'FAULT_UNKNOWN',
    ],
  ],
  testCallback: ['E75', 'E46', '010', '009', '002', '003', 'E77', 'E51', 'E76', 'FAULT_UNKNOWN'],
  checkOrder: CHECK_REFUSALS,
  checkEcommerceOrder: CHECK_REFUSALS,
  cancelQr: ['E46', 'E96'],
} as const satisfies Record<string, readonly Code[]>;

const ref = (name: keyof typeof SCHEMAS) => ({ $ref: `#/components/schemas/${name}` });
const json = (name: keyof typeof SCHEMAS) => ({ 'application/json': { schema: ref(name) } });

/**
 * Returns the OpenAPI 3.1 document of the service, made from the schemas that decode its requests, with the gateway's
 * own routes below `/_mock`. Callers of these routes send a token (security scheme `admin`).
 */
export function openApi(baseUrl: string, mock: readonly RouteDoc[]): object {
  const own = describeRoutes(mock);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Payment QR service (mock)',
      version: '1',
      description: 'Token, QR generation, push to a payment box, and the sandbox test callback.',
    },
    servers: [{ url: baseUrl }],
    paths: {
      [PATHS.token]: {
        post: {
          summary: 'Get a bearer token of 300 seconds',
          description: 'The body is not read.',
          operationId: 'token',
          security: [{ basic: [] }],
          responses: {
            200: answer('the token', 'TokenResponse'),
            401: failure(['E74']),
            429: { ...failure(['E74']), description: 'E74: too many wrong logins; see Retry-After' },
          },
        },
      },
      [PATHS.generate]: endpoint('generate', 'Generate a payment QR', 'GenerateRequest', 'GenerateResponse'),
      [PATHS.sendQr]: endpoint('sendQr', 'Push a QR to a payment box', 'SendQrRequest', 'StatusResponse'),
      [PATHS.testCallback]: endpoint(
        'testCallback',
        'Simulate a completed payment (sandbox)',
        'TestCallbackRequest',
        'StatusResponse',
      ),
      ...Object.fromEntries(
        (['checkOrder', 'checkEcommerceOrder'] as const).map((id) => [
          PATHS[id],
          endpoint(id, 'The state of orders', 'CheckOrderRequest', 'CheckOrderResponse'),
        ]),
      ),
      [PATHS.cancelQr]: endpoint('cancelQr', 'Cancel an unpaid order', 'CancelQrRequest', 'StatusResponse'),
      ...Object.fromEntries(
        Object.entries(own.paths).map(([path, operations]) => [
          path,
          { servers: [{ url: '/' }], ...Object(operations) },
        ]),
      ),
    },
    webhooks: {
      transactionSync: {
        post: {
          summary: 'A payment, sent to the endpoint that the partner configured',
          operationId: 'transactionSync',
          requestBody: { required: true, content: json('TransactionSync') },
          responses: { 200: answer('received and processed', 'TransactionSyncReply') },
        },
      },
    },
    components: {
      securitySchemes: {
        basic: { type: 'http', scheme: 'basic' },
        bearer: { type: 'http', scheme: 'bearer' },
        admin: { type: 'http', scheme: 'bearer' },
      },
      schemas: Object.fromEntries(Object.entries(SCHEMAS).map(([name, schema]) => [name, jsonSchema(name, schema)])),
    },
  };
}

function endpoint(
  operationId: keyof typeof REFUSALS,
  summary: string,
  request: keyof typeof SCHEMAS,
  response: keyof typeof SCHEMAS,
): object {
  return {
    post: {
      summary,
      operationId,
      security: [{ bearer: [] }],
      requestBody: { required: true, content: json(request) },
      responses: {
        200: answer('done', response),
        400: failure(REFUSALS[operationId]),
        401: failure(['E74']),
        413: { ...failure(['E46']), description: `E46: the body is longer than ${LIMITS.httpBodyBytesMax} bytes` },
        415: { ...failure(['E46']), description: 'E46: the body is not application/json' },
        500: failure(['E05']),
      },
    },
  };
}

function answer(description: string, schema: keyof typeof SCHEMAS): object {
  return { description, content: json(schema) };
}

function failure(codes: readonly Code[]): object {
  return {
    description: codes.map((code) => `- \`${code}\` ${CODES[code]}`).join('\n'),
    headers: { [REASON_HEADER]: { description: 'the field, and what was expected', schema: { type: 'string' } } },
    content: {
      'application/json': {
        schema: {
          type: 'object',
          required: ['status', 'message'],
          properties: { status: { const: 'FAILED' }, message: { enum: codes } },
        },
      },
    },
  };
}

function jsonSchema(name: string, schema: z.ZodType): object {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io: name.endsWith('Request') ? 'input' : 'output' });
  return rest;
}
