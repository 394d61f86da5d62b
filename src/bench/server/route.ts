import type { IncomingHttpHeaders } from 'node:http';
import type { z } from 'zod';
import type { TargetKind } from '../target.ts';
import type { Scenario } from '../vocabulary/scenario.ts';
import type { TargetChoice } from './schemas.ts';

/** What a caller is refused with, and what to do about it. */
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

/** What the server is given by the program around it. */
export interface ServerDeps {
  /** The kind of target that was chosen for the run or rig `id`. Throws ConfigError. */
  targetOf(choice: TargetChoice, seed: number, id: string): Promise<TargetKind>;
  /** The files of scenarios that may be run by name. */
  scenarios(): Promise<ReadonlyMap<string, string>>;
  /** The scenario with as many boxes as were chosen. */
  withBoxes(scenario: Scenario, choice: TargetChoice): Scenario;
  anySeed(): number;
  /** Probes besides `screen` that a caller may choose. They run commands and read files, so whoever starts the server says which. */
  probes: readonly string[];
}

/** A request that has passed the guard. */
export interface RouteRequest {
  params: Readonly<Record<string, string>>;
  /** Parsed JSON, not yet checked; undefined without a body. */
  body: unknown;
  headers: IncomingHttpHeaders;
  /** Aborted when the caller goes away before the answer. */
  signal: AbortSignal;
}

/** One thing that a stream tells. */
export interface StreamEvent {
  /** Counts from 1 on. */
  id: number;
  event: string;
  data: object;
}

/** Calls `listener` with what was told before and with what is told from now on; undefined once it is over. */
export type Subscribe = (listener: (event: StreamEvent | undefined) => void) => () => void;

export type Answer =
  | { status: number; json: object; headers?: Readonly<Record<string, string>> }
  | { status: number; type: string; body: string | Uint8Array; headers?: Readonly<Record<string, string>> }
  | { status: number; follow: Subscribe };

/** What a route may answer, for the description of the API. */
export interface ResponseDoc {
  about: string;
  /** Of a JSON answer. */
  schema?: z.ZodType;
  /** Of any other. */
  type?: string;
}

/** One route: what is served and what is described come from the same row. */
export interface Route {
  method: 'GET' | 'POST' | 'DELETE';
  /** As `/runs/{id}`. */
  path: string;
  /** A name for generated clients. */
  name: string;
  summary: string;
  /** Of the JSON body; without one the route takes none. */
  body?: z.ZodType;
  /** By status; refusals that any route may answer are left out. */
  answers: Readonly<Record<number, ResponseDoc>>;
  handle(asked: RouteRequest): Answer | Promise<Answer>;
}
