import { request } from 'node:http';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, onTestFinished } from 'vitest';
import { z } from 'zod';
import type { TargetKind } from '../../src/bench/engine/target.ts';
import type { ServerDeps } from '../../src/bench/serve/route.ts';
import { startBenchServer } from '../../src/bench/serve/server.ts';
import { LIBRARY, scenariosIn, targetOf, withBoxes } from '../../src/commands/actions/bench-target.ts';
import { noLog, SEED } from './setup.ts';

const response = z.object({
  content: z.record(z.string(), z.object({ schema: z.record(z.string(), z.unknown()) })).optional(),
});
const operation = z.object({ operationId: z.string(), responses: z.record(z.string(), response) });
const document = z.object({
  openapi: z.literal('3.1.0'),
  paths: z.record(z.string(), z.record(z.string(), operation)),
  components: z.object({ schemas: z.record(z.string(), z.unknown()) }),
});
export type Document = z.output<typeof document>;

export interface Answered {
  status: number;
  headers: Headers;
  text: string;
  /** Of a JSON answer, else null. */
  json: Record<string, unknown>;
}

export interface TestControl {
  origin: string;
  document: Document;
  /** Asks, and holds what is answered to the description of the API. */
  ask(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answered>;
  close(): Promise<void>;
}

/** A control server in this process, whose targets are as on the command line unless `kind` makes others. */
export async function testServer({
  kind,
  token,
  ...deps
}: Partial<ServerDeps> & { kind?: () => TargetKind; token?: string } = {}): Promise<TestControl> {
  const running = await startBenchServer(
    { host: '127.0.0.1', port: 0, token, version: '1', log: noLog },
    {
      targetOf: async (choice, seed) => kind?.() ?? targetOf(choice, seed),
      scenarios: () => scenariosIn(LIBRARY),
      withBoxes,
      anySeed: () => SEED,
      probes: [],
      ...deps,
    },
  );
  onTestFinished(() => running.close('the test is over'));
  const { origin } = running;
  const authorization: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const described = document.parse(await (await fetch(`${origin}/openapi.json`, { headers: authorization })).json());
  const ask: TestControl['ask'] = async (method, path, body, headers = authorization) => {
    const json = body === undefined ? {} : { 'content-type': 'application/json' };
    const answer = await fetch(`${origin}${path}`, {
      method,
      headers: { ...json, ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await answer.text();
    const isJson = answer.headers.get('content-type')?.startsWith('application/json') === true;
    assertDescribed(described, `${method} ${path}`, answer, text);
    return { status: answer.status, headers: answer.headers, text, json: isJson ? JSON.parse(text) : null };
  };
  return { origin, document: described, ask, close: () => running.close('by the test') };
}

/** The operations at a path, by method. */
export function operationsAt({ paths }: Document, path: string): Document['paths'][string] | undefined {
  const found = Object.entries(paths).find(([template]) => {
    return new RegExp(`^${template.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path);
  });
  return found?.[1];
}

function assertDescribed(described: Document, what: string, answer: Response, text: string): void {
  const [method = '', path = ''] = what.split(' ');
  const operation = operationsAt(described, path)?.[method.toLowerCase()];
  // Of what there is not nothing is described, but a refusal always says what to do.
  if (operation === undefined) {
    expect(JSON.parse(text)).toEqual({ error: expect.stringMatching(/./), fix: expect.stringMatching(/./) });
    return;
  }
  const told = operation.responses[answer.status];
  expect(told, `${what} answered ${answer.status}, which is not described: ${text}`).toBeDefined();
  const types = Object.keys(told?.content ?? {});
  const type = answer.headers.get('content-type')?.split(';', 1)[0];
  expect(type === undefined ? [] : [type]).toEqual(types);
  const schema = told?.content?.['application/json']?.schema;
  if (schema === undefined) return;
  const ajv = new Ajv2020({ strict: false });
  const isRight = ajv.compile({ ...schema, components: described.components });
  expect({ what, right: isRight(JSON.parse(text)), errors: isRight.errors, text }).toMatchObject({ right: true });
}

/** A request as no client of ours sends it; the status of its answer and what it says. */
export function rawRequest(
  origin: string,
  { path = '/', method = 'GET', headers = {} }: { path?: string; method?: string; headers?: Record<string, string> },
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const asked = request(`${origin}${path}`, { method, headers }, async (answer) => {
      const chunks: Buffer[] = [];
      for await (const chunk of answer) chunks.push(chunk);
      resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString() });
    });
    asked.once('error', reject);
    asked.end();
  });
}
