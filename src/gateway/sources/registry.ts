import { z } from 'zod';
import { casso } from './casso.ts';
import { payos } from './payos.ts';
import { sepay } from './sepay.ts';
import type { NamedOptions, Source, SourceDeps, SourceKind } from './source.ts';
import { vietqr } from './vietqr.ts';

/** A kind for any options. Decoding and opening are one step, so that no caller needs their type. */
export interface RegisteredKind {
  readonly kind: string;
  readonly options: z.ZodType<NamedOptions>;
  /** Throws a ZodError for wrong options. */
  open(options: unknown, deps: SourceDeps): Source;
}

export function register<Options extends z.ZodType<NamedOptions>>(it: SourceKind<Options>): RegisteredKind {
  return { kind: it.kind, options: it.options, open: (given, deps) => it.open(it.options.parse(given), deps) };
}

/** Every kind of source, one line each. */
export const SOURCE_KINDS: ReadonlyMap<string, RegisteredKind> = new Map(
  [register(sepay), register(casso), register(payos), register(vietqr)].map((it) => [it.kind, it]),
);

/** The path below the gateway at which this source is called first. */
export function hookPathOf({ kind, name }: NamedOptions): string {
  return `hooks/${name}${kind === vietqr.kind ? '/api/token_generate' : ''}`;
}

type Discriminable = Parameters<typeof z.discriminatedUnion>[1][number] & z.ZodType<NamedOptions>;

/** The options of one source in a configuration. */
export const sourceOptions: z.ZodType<NamedOptions> = z.discriminatedUnion(
  'kind',
  // Each kind's options are an object with a literal `kind`, which its type does not say.
  [...SOURCE_KINDS.values()].map(({ options }) => options as Discriminable) as [Discriminable],
);
