import { z } from 'zod';
import type { ResponseDoc, Route } from './route.ts';
import { failure, LIMITS } from './schemas.ts';

type Json = Record<string, unknown>;

/** Answers that any route may give. */
const COMMON_ANSWERS: Readonly<Record<number, ResponseDoc>> = {
  401: { about: 'the token is missing or wrong', schema: failure },
  403: { about: 'not from this machine, or from a page of another origin', schema: failure },
  429: { about: 'the limit is reached', schema: failure },
  503: { about: 'the limit is reached, or the server ends', schema: failure },
};
const WITH_BODY: Readonly<Record<number, ResponseDoc>> = {
  400: { about: 'the body is no JSON', schema: failure },
  413: { about: `the body is longer than ${LIMITS.bodyBytes} bytes`, schema: failure },
  415: { about: 'the body is not application/json', schema: failure },
  422: { about: 'the body is not what is expected: `error` names what', schema: failure },
};

/** The server's OpenAPI 3.1 document, made from the routes that it serves. */
export function openApi(routes: readonly Route[], version: string): object {
  const schemas: Json = {};
  const paths: Record<string, Json> = {};
  for (const route of routes) {
    const answers = { ...COMMON_ANSWERS, ...(route.body === undefined ? {} : WITH_BODY), ...route.answers };
    const parameters = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
      name,
      in: 'path',
      required: true,
      schema: { type: 'string' },
    }));
    paths[route.path] ??= {};
    Object.assign(paths[route.path] ?? {}, {
      [route.method.toLowerCase()]: {
        operationId: route.name,
        summary: route.summary,
        ...(parameters.length === 0 ? {} : { parameters }),
        ...(route.body === undefined ? {} : { requestBody: { content: jsonOf(route.body, 'input', schemas) } }),
        responses: Object.fromEntries(
          Object.entries(answers).map(([status, described]) => [status, responseOf(described, schemas)]),
        ),
      },
    });
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'paybox bench',
      version,
      description: 'Runs scenarios against payment boxes, and opens rigs to drive them.',
    },
    security: [{}, { token: [] }],
    paths,
    components: { schemas, securitySchemes: { token: { type: 'http', scheme: 'bearer' } } },
  };
}

function responseOf({ about, schema, type }: ResponseDoc, schemas: Json): object {
  if (schema !== undefined) return { description: about, content: jsonOf(schema, 'output', schemas) };
  if (type === undefined) return { description: about };
  return {
    description: about,
    content: { [type]: { schema: type === 'application/json' ? { type: 'object' } : { type: 'string' } } },
  };
}

function jsonOf(schema: z.ZodType, io: 'input' | 'output', schemas: Json): object {
  return { 'application/json': { schema: { $ref: `#/components/schemas/${addSchema(schema, io, schemas)}` } } };
}

/** Adds a schema and the schemas it refers to to the components; returns its name. */
function addSchema(schema: z.ZodType, io: 'input' | 'output', schemas: Json): string {
  const { id = 'Unnamed' } = z.globalRegistry.get(schema) ?? {};
  if (schemas[id] !== undefined) return id;
  const { $schema: _dialect, $defs = {}, ...own } = z.toJSONSchema(schema, { io });
  const parts: Json = { ...$defs, ...($defs[id] === undefined ? { [id]: own } : {}) };
  for (const [name, part] of Object.entries(parts)) {
    schemas[name] ??= JSON.parse(JSON.stringify(part).replaceAll('"#/$defs/', '"#/components/schemas/')) as unknown;
  }
  return id;
}
