import { z } from 'zod';
import { casso } from './casso.ts';
import { weaknessOf } from './fields.ts';
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
  /** Which of its secrets somebody could guess, by the path of the option, and what is expected. */
  weaknesses(options: unknown): Weakness[];
  /**
   * The options with this key, or with a made one. `undefined` if none is given and only the provider makes one. Throws a
   * ZodError for wrong options.
   */
  rotate(options: unknown, key: string | undefined, make: () => string): Rotated | undefined;
}

export interface Weakness {
  path: string[];
  message: string;
}

/** The options of a source with another key. */
export interface Rotated {
  options: NamedOptions;
  key: string;
}

export function register<Options extends z.ZodType<NamedOptions>>(it: SourceKind<Options>): RegisteredKind {
  return {
    kind: it.kind,
    options: it.options,
    open: (given, deps) => it.open(it.options.parse(given), deps),
    weaknesses: (given) =>
      it.proofs(it.options.parse(given)).flatMap((proof) => {
        const message = weaknessOf(proof);
        return message === undefined ? [] : [{ path: [...proof.at], message }];
      }),
    rotate: (given, chosen, make) => {
      const options = it.options.parse(given);
      if (chosen === undefined && it.isKeyGiven(options)) return undefined;
      const key = chosen ?? make();
      return { options: it.withKey(options, key), key };
    },
  };
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

/** Which secrets of a source with these options somebody could guess (PROTOCOL.md, clause SRC-5). */
export function weaknessesOf(options: { kind?: string }): Weakness[] {
  return SOURCE_KINDS.get(options.kind ?? '')?.weaknesses(options) ?? [];
}

/** The accounts whose QRs a source with these options makes. */
export function accountsMadeBy(options: NamedOptions): readonly string[] {
  return madeFor.safeParse(options).data?.qr.accounts ?? [];
}

const madeFor = z.object({ qr: z.object({ accounts: z.array(z.string()) }) });

/** Options that are no secrets. */
const SHOWN: readonly string[] = ['kind', 'username', 'auth', 'api', 'url'];
/** Options without any secret in them. */
const SHOWN_WHOLE: readonly string[] = ['qr'];

/** The options of a source as an admin may see them; a secret is `true`. */
export function shownOptions(options: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(options).map(([key, value]: [string, unknown]) => {
      if (SHOWN_WHOLE.includes(key)) return [key, value];
      if (!SHOWN.includes(key)) return [key, value !== undefined];
      return [key, typeof value === 'object' && value !== null ? shownOptions(value) : value];
    }),
  );
}
