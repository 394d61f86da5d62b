import { z } from 'zod';
import { casso } from './casso.ts';
import { weaknessOf } from './fields.ts';
import { payos } from './payos.ts';
import { sepay } from './sepay.ts';
import type { ManualRow, NamedOptions, Source, SourceDeps, SourceKind } from './source.ts';
import { vietqr } from './vietqr.ts';

/**
 * A kind of source whose options have any type. It decodes and opens in one step, so that no caller needs that type.
 */
export interface RegisteredKind {
  readonly kind: string;
  readonly manual: ManualRow;
  readonly firstPath?: string | undefined;
  readonly options: z.ZodType<NamedOptions>;
  /** Opens a source. Throws a ZodError for wrong options. */
  open(options: unknown, deps: SourceDeps): Source;
  /** Lists the secrets that an attacker could guess, by the path of the option, with what is expected. */
  weaknesses(options: unknown): Weakness[];
  /**
   * Returns the options with this key, or with a new one. Returns undefined if no key is given and only the provider
   * makes one. Throws a ZodError for wrong options.
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
    manual: it.manual,
    firstPath: it.firstPath,
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

/** Returns the path below the gateway that this source calls first. */
export function hookPathOf({ kind, name }: NamedOptions): string {
  return `hooks/${name}${SOURCE_KINDS.get(kind)?.firstPath ?? ''}`;
}

type Discriminable = Parameters<typeof z.discriminatedUnion>[1][number] & z.ZodType<NamedOptions>;

/** The options of one source in a configuration. */
export const sourceOptions: z.ZodType<NamedOptions> = z.discriminatedUnion(
  'kind',
  // The options of each kind are an object with a literal `kind`, but their type does not say so.
  [...SOURCE_KINDS.values()].map(({ options }) => options as Discriminable) as [Discriminable],
);

/** Lists the secrets in these options that an attacker could guess (PROTOCOL.md, clause SRC-5). */
export function weaknessesOf(options: { kind?: string }): Weakness[] {
  return SOURCE_KINDS.get(options.kind ?? '')?.weaknesses(options) ?? [];
}

/** Returns the accounts whose QRs a source with these options makes. */
export function accountsMadeBy(options: NamedOptions): readonly string[] {
  return madeFor.safeParse(options).data?.qr.accounts ?? [];
}

const madeFor = z.object({ qr: z.object({ accounts: z.array(z.string()) }) });

/** Options that hold no secret. */
const SHOWN: readonly string[] = ['kind', 'username', 'auth', 'api', 'url'];
/** Options that hold no secret at any depth. */
const SHOWN_WHOLE: readonly string[] = ['qr'];

/** Returns the options of a source without their secrets: each secret is `true`. */
export function shownOptions(options: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(options).map(([key, value]: [string, unknown]) => {
      if (SHOWN_WHOLE.includes(key)) return [key, value];
      if (!SHOWN.includes(key)) return [key, value !== undefined];
      return [key, typeof value === 'object' && value !== null ? shownOptions(value) : value];
    }),
  );
}
