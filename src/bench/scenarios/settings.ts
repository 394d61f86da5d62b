import { ConfigError, PayboxError } from '../../lib/errors.ts';
import { suggestion } from '../../lib/suggestion.ts';
import { parseExpression, variablesIn } from './expression.ts';
import type { Scenario } from './scenario.ts';
import { IN_TEXT } from './scope.ts';
import type { Step } from './steps.ts';
import { name as nameSchema, text as textSchema } from './values.ts';

export type Settings = Readonly<Record<string, string | number | boolean | null>>;

const WHOLE = /^(?:0|-?[1-9]\d{0,14})$/;

/**
 * Returns variables from the command line, each as `NAME=VALUE`. Whole numbers, true and false become values of their
 * kind, all else is text.
 */
export function settingsOf(written: readonly string[]): Settings {
  return Object.fromEntries(
    written.map((it) => {
      const at = it.indexOf('=');
      const [name, value] = [it.slice(0, Math.max(0, at)), it.slice(at + 1)];
      if (!nameSchema.safeParse(name).success || !textSchema.safeParse(value).success) {
        throw new ConfigError(`--set ${it}: expected NAME=VALUE, as --set customers=50`);
      }
      if (value === 'true' || value === 'false') return [name, value === 'true'];
      return [name, WHOLE.test(value) ? Number(value) : value];
    }),
  );
}

/**
 * Returns the scenarios with these variables instead of their own. Throws ConfigError for a variable that none of them
 * uses.
 */
export function withSettings(scenarios: readonly Scenario[], settings: Settings): Scenario[] {
  const known = new Set(scenarios.flatMap((it) => [...variablesOf(it)]));
  for (const name of Object.keys(settings)) {
    if (known.has(name)) continue;
    const hint = suggestion(name, known);
    const words = hint === '' ? `; its variables are ${[...known].sort().join(', ') || 'none'}` : hint;
    throw new ConfigError(`the variable ${name} is not used by the scenario${scenarios.length > 1 ? 's' : ''}${words}`);
  }
  const setBySteps = new Set(scenarios.flatMap(({ steps }) => [...setIn(steps)]));
  const replaced = Object.keys(settings).find((name) => setBySteps.has(name));
  if (replaced !== undefined) {
    throw new ConfigError(`a step sets ${replaced}, so --set ${replaced} would be lost: give it under variables`);
  }
  return scenarios.map((it) => ({ ...it, variables: { ...it.variables, ...settings } }));
}

/** Yields the variables of all `set` steps. */
function* setIn(value: unknown): Iterable<string> {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    if (key === 'set' && typeof inner === 'object' && inner !== null) yield* Object.keys(inner);
    else yield* setIn(inner);
  }
}

/** Returns every variable that a scenario defines or uses. */
function variablesOf({ variables, steps }: Scenario): Set<string> {
  return new Set([...Object.keys(variables), ...usedIn(variables), ...usedIn(steps)]);
}

function* usedIn(value: unknown): Iterable<string> {
  if (typeof value === 'string') {
    for (const [, written = ''] of value.matchAll(IN_TEXT)) yield* namesIn(written);
  }
  if (typeof value !== 'object' || value === null) return;
  const { included } = value as Step;
  if (included !== undefined) yield* Object.keys(included.variables);
  for (const it of Object.values(included === undefined ? value : { ...value, included: included.steps }))
    yield* usedIn(it);
}

/**
 * Returns the variables of an expression. A wrong expression has none, because the check of the scenario reports it.
 */
function namesIn(written: string): string[] {
  try {
    return [...variablesIn(parseExpression(written))].map(({ name }) => name);
  } catch (error) {
    if (error instanceof PayboxError) return [];
    throw error;
  }
}
