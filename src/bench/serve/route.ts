import type { IncomingHttpHeaders } from 'node:http';
import type { z } from 'zod';
import type { TargetKind } from '../engine/target.ts';
import type { Scenario } from '../scenarios/scenario.ts';
import type { TargetChoice } from './schemas.ts';

/** An error answer with the reason and the fix. */
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

/** Dependencies of the server. */
export interface ServerDeps {
  /** The kind of target for the run or rig `id`. Throws ConfigError. */
  targetOf(choice: TargetChoice, seed: number, id: string): Promise<TargetKind>;
  /** Scenario files that can be run by name. */
  scenarios(): Promise<ReadonlyMap<string, string>>;
  /** The scenario with the chosen number of boxes. */
  withBoxes(scenario: Scenario, choice: TargetChoice): Scenario;
  anySeed(): number;
  /**
   * Probes that a caller may choose besides `screen`. Probes run commands and read files, so whoever starts the server must allow
   * them.
   */
  probes: readonly string[];
}

/** A request that is authorized. */
export interface RouteRequest {
  params: Readonly<Record<string, string>>;
  /** Parsed but unchecked JSON; undefined without a body. */
  body: unknown;
  headers: IncomingHttpHeaders;
  /** Aborts when the caller disconnects before the answer. */
  signal: AbortSignal;
}

/** One event of a stream. */
export interface StreamEvent {
  /** Counted from 1. */
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

/** A possible answer of a route, for the API description. */
export interface ResponseDoc {
  about: string;
  /** For JSON answers. */
  schema?: z.ZodType;
  /** Content type of other answers. */
  type?: string;
}

/** A route. It is served and described from the same definition. */
export interface Route {
  method: 'GET' | 'POST' | 'DELETE';
  /** For example `/runs/{id}`. */
  path: string;
  /** Operation name for generated clients. */
  name: string;
  summary: string;
  /** Schema of the JSON body; undefined when the route takes none. */
  body?: z.ZodType;
  /** By status; without the refusals that any route may answer. */
  answers: Readonly<Record<number, ResponseDoc>>;
  handle(asked: RouteRequest): Answer | Promise<Answer>;
}
