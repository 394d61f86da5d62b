import type { IncomingHttpHeaders } from 'node:http';
import { describeRoutes, type RouteDoc } from '../../lib/route.ts';
import type { TargetKind } from '../engine/target.ts';
import type { Scenario } from '../scenarios/scenario.ts';
import { failure, LIMITS, type TargetChoice } from './schemas.ts';

/** Carries the reason and the fix of an error answer. */
export class Refusal extends Error {
  readonly status: number;
  readonly fix: string;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, message: string, fix: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.name = 'Refusal';
    this.status = status;
    this.fix = fix;
    this.headers = headers;
  }
}

/** The dependencies of the server. */
export interface ServerDeps {
  /** Returns the kind of target for the run or rig `id`. Throws ConfigError. */
  targetOf(choice: TargetChoice, seed: number, id: string): Promise<TargetKind>;
  /** Returns the scenario files that can be run by name. */
  scenarios(): Promise<ReadonlyMap<string, string>>;
  /** Returns the scenario with the chosen number of boxes. */
  withBoxes(scenario: Scenario, choice: TargetChoice): Scenario;
  anySeed(): number;
  /**
   * The probes that a caller may choose besides `screen`. Probes run commands and read files, so the person who starts
   * the server must allow them.
   */
  probes: readonly string[];
}

/** A request that is authorized. */
export interface RouteRequest {
  params: Readonly<Record<string, string>>;
  /** The parsed but unchecked JSON; undefined without a body. */
  body: unknown;
  headers: IncomingHttpHeaders;
  /** Aborts when the caller disconnects before the answer. */
  signal: AbortSignal;
}

/** One event of a stream. */
export interface StreamEvent {
  /** The number of the event, counted from 1. */
  id: number;
  event: string;
  data: object;
}

/** Calls `listener` with past and new events, and with undefined at the end. Returns the function that unsubscribes. */
export type Subscribe = (listener: (event: StreamEvent | undefined) => void) => () => void;

export type Answer =
  | { status: number; json: object; headers?: Readonly<Record<string, string>> }
  | { status: number; type: string; body: string | Uint8Array; headers?: Readonly<Record<string, string>> }
  | { status: number; follow: Subscribe };

/** A route of the bench server. The server serves and describes it from the same value. */
export interface Route extends RouteDoc {
  handle(asked: RouteRequest): Answer | Promise<Answer>;
}

/** The answers that any route may give. */
const COMMON_ANSWERS: RouteDoc['answers'] = {
  401: { about: 'the token is missing or wrong', schema: failure },
  403: { about: 'not from this machine, or from a page of another origin', schema: failure },
  429: { about: 'the limit is reached', schema: failure },
  503: { about: 'the limit is reached, or the server ends', schema: failure },
};
const WITH_BODY: RouteDoc['answers'] = {
  400: { about: 'the body is no JSON', schema: failure },
  413: { about: `the body is longer than ${LIMITS.bodyBytes} bytes`, schema: failure },
  415: { about: 'the body is not application/json', schema: failure },
  422: { about: 'the body is not what is expected: `error` names what', schema: failure },
};

/** Returns the server's OpenAPI 3.1 document, made from the routes that it serves. */
export function openApi(routes: readonly Route[], version: string): object {
  const { paths, schemas } = describeRoutes(
    routes.map((it) => ({ ...it, answers: { ...COMMON_ANSWERS, ...(it.body && WITH_BODY), ...it.answers } })),
  );
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
