import { z } from 'zod';

type Json = Record<string, unknown>;

/** A possible answer of a route. */
export interface AnswerDoc {
  about: string;
  /** Schema of a JSON answer: of zod, or JSON Schema. */
  schema?: z.ZodType | object;
  /** Media type; JSON if it is left out. */
  type?: string;
  /** Headers, as OpenAPI describes them. */
  headers?: object;
}

/** Describes one HTTP route for OpenAPI. A server adds its handler, and who may call it, to the same value. */
export interface RouteDoc {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** The whole path, with `:name` for a parameter. */
  path: string;
  /** Operation name for generated clients. */
  name: string;
  summary: string;
  description?: string;
  /** Schema of the parameters after `?`. */
  query?: z.ZodType;
  /** Schema of the JSON body; undefined when the route takes none. */
  body?: z.ZodType;
  /** True where the server refuses an empty body. */
  isBodyRequired?: boolean;
  /** True for a call that the server itself makes: its body is described as it is sent. */
  isWebhook?: true;
  /** By status. */
  answers: Readonly<Record<number, AnswerDoc>>;
  /** Security requirements, where they differ from those of the document. */
  security?: readonly object[];
}

/**
 * Returns the paths and component schemas of an OpenAPI 3.1 document. A schema with an id becomes a component. This is our own
 * writer because `@fastify/swagger` with its type provider adds 22 to 34 ms of CPU to each start, needs fastify, which does not
 * serve the box's pages, and would bring its own validation beside our refusals; `z.toJSONSchema` is already loaded.
 */
export function describeRoutes(routes: readonly RouteDoc[]): { paths: Json; schemas: Json } {
  const schemas: Json = {};
  const paths: Record<string, Json> = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route, schemas) };
  }
  return { paths, schemas };
}

function operationOf(route: RouteDoc, schemas: Json): object {
  const { name, summary, description, security, body, answers, isBodyRequired = false, isWebhook } = route;
  const parameters = parametersOf(route);
  const required = isBodyRequired ? { required: true } : {};
  return {
    summary,
    ...(description !== undefined && { description }),
    operationId: name,
    ...(security && { security }),
    ...(parameters.length > 0 && { parameters }),
    ...(body && {
      requestBody: { ...required, content: contentOf({ schema: body }, isWebhook ? 'output' : 'input', schemas) },
    }),
    responses: Object.fromEntries(
      Object.entries(answers).map(([status, answer]) => {
        const { about, headers, schema, type } = answer;
        const isEmpty = schema === undefined && type === undefined;
        const content = isEmpty ? {} : { content: contentOf(answer, 'output', schemas) };
        return [status, { description: about, ...(headers && { headers }), ...content }];
      }),
    ),
  };
}

function parametersOf({ path, query }: RouteDoc): object[] {
  const { properties = {} } = (query ? schemaOf(query, 'input', {}) : {}) as { properties?: Json };
  return [
    ...Array.from(path.matchAll(/:(\w+)/g), ([, name]) => ({
      name,
      in: 'path',
      required: true,
      schema: { type: 'string' },
    })),
    ...Object.entries(properties).map(([name, schema]) => ({ name, in: 'query', required: false, schema })),
  ];
}

function contentOf(
  { schema, type = 'application/json' }: Pick<AnswerDoc, 'schema' | 'type'>,
  io: 'input' | 'output',
  schemas: Json,
): object {
  if (schema === undefined) return { [type]: { schema: { type: type === 'application/json' ? 'object' : 'string' } } };
  return { [type]: { schema: schema instanceof z.ZodType ? schemaOf(schema, io, schemas) : schema } };
}

/** Returns the JSON Schema of a schema. If the schema has an id, adds it to the components and returns the reference to it. */
function schemaOf(schema: z.ZodType, io: 'input' | 'output', schemas: Json): object {
  const { id } = z.globalRegistry.get(schema) ?? {};
  const reference = { $ref: `#/components/schemas/${id}` };
  if (id !== undefined && schemas[id] !== undefined) return reference;
  const { $schema: _dialect, $defs = {}, ...own } = z.toJSONSchema(schema, { io, unrepresentable: 'any' });
  const parts: Json = { ...$defs, ...(id !== undefined && $defs[id] === undefined && { [id]: own }) };
  for (const [name, part] of Object.entries(parts)) schemas[name] ??= withComponents(part);
  return id === undefined ? withComponents(own) : reference;
}

function withComponents<T>(part: T): T {
  return JSON.parse(JSON.stringify(part).replaceAll('"#/$defs/', '"#/components/schemas/')) as T;
}
