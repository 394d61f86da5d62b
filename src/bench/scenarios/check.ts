import { PayboxError } from '../../lib/errors.ts';
import { suggestion } from '../../lib/suggestion.ts';
import {
  FAULT_NAMES,
  type FaultName,
  faultKind,
  faultOfContent,
  MAGIC_PREFIX,
  magicContent,
} from '../../protocol/faults.ts';
import { parseExpression, variablesIn } from './expression.ts';
import { faultOf } from './fault.ts';
import { type KnownVariable, Names, resultOf, sortedNames } from './names.ts';
import { problemsError, type Scenario } from './scenario.ts';
import { IN_TEXT, MADE_PER_BOX, MADE_TWICE } from './scope.ts';
import type { Source } from './source.ts';
import { COUNTER, listsIn, type Step, VERBS } from './steps.ts';

/** The findings of a check, each with `file:line:column`. */
export interface CheckResult {
  /** Mistakes that would fail when the scenario runs. */
  problems: string[];
  /** Steps that probably mean something else than they say. */
  warnings: string[];
}

const OPEN = '${';
/** The only fault that makes a payment by itself. */
const PAYING_FAULT: FaultName = 'paid-before';

type Path = readonly (string | number)[];

/** Checks what a schema cannot: that each variable exists where a step uses it, and that steps have an effect. */
export function checkScenario(scenario: Scenario): CheckResult {
  return new Check(scenario).result();
}

/** Returns the warnings. Throws ConfigError with all problems. */
export function assertChecked(scenarios: readonly Scenario[]): string[] {
  const results = scenarios.map(checkScenario);
  const problems = results.flatMap((it) => it.problems);
  if (problems.length > 0) throw problemsError([...new Set(problems)]);
  return [...new Set(results.flatMap((it) => it.warnings))];
}

class Check {
  readonly #scenario: Scenario;
  /** These are sets, because steps that are included twice have each problem once. */
  readonly #problems = new Set<string>();
  readonly #warnings = new Set<string>();
  /** The names that any step makes, with the place of the first one. */
  readonly #madeAt = new Map<string, string>();
  #isPaid = false;

  constructor(scenario: Scenario) {
    this.#scenario = scenario;
  }

  result(): CheckResult {
    const { steps, variables, source, boxes } = this.#scenario;
    this.#collect(steps, ['steps'], source);
    const names = Names.ofScenario(boxes);
    this.#variables(variables, names, source);
    this.#list(steps, ['steps'], source, names);
    return { problems: [...this.#problems], warnings: [...this.#warnings] };
  }

  #variables(variables: Readonly<Record<string, unknown>>, names: Names, source: Source): void {
    for (const [name, value] of Object.entries(variables)) {
      this.#texts(value, ['variables', name], source, names);
      names.set(name, {});
    }
  }

  /** Notes where each name is made. So the check can tell a use before its making from an unknown name. */
  #collect(steps: readonly Step[], path: Path, source: Source): void {
    for (const [index, step] of steps.entries()) {
      const at = [...path, index];
      for (const name of Object.keys(made(step))) {
        if (!this.#madeAt.has(name)) this.#madeAt.set(name, `${source.file}:${source.placeOf(at).line}`);
      }
      for (const list of listsIn(step)) {
        const isIncluded = step.included?.steps === list.steps;
        if (isIncluded) this.#collect(list.steps, ['steps'], step.included?.source ?? source);
        else this.#collect(list.steps, [...at, ...list.path], source);
      }
    }
  }

  #list(steps: readonly Step[], path: Path, source: Source, names: Names): void {
    for (const [index, step] of steps.entries()) this.#step(step, [...path, index], source, names);
  }

  #step(step: Step, path: Path, source: Source, names: Names): void {
    this.#own(step, path, source, names);
    if (step.repeat !== undefined) this.#repeat(step.repeat, [...path, 'repeat'], source, names);
    if (step.parallel !== undefined) this.#parallel(step.parallel, [...path, 'parallel'], source, names);
    if (step['for each box'] !== undefined)
      this.#eachBox(step['for each box'], [...path, 'for each box'], source, names);
    if (step.then !== undefined) this.#choice(step, path, source, names);
    if (step.included !== undefined) {
      const { source: inner, steps, variables } = step.included;
      const unset = Object.entries(variables).filter(([name]) => names.get(name) === undefined);
      this.#variables(Object.fromEntries(unset), names, inner);
      this.#list(steps, ['steps'], inner, names);
    }
    const results = made(step);
    for (const [name, known] of Object.entries(results)) this.#make(name, known, path, source, names);
    if (step.as !== undefined && results[step.as] === undefined) {
      this.#problem([...path, 'as'], source, 'this step has no result that could have a name');
    }
  }

  /** Checks the step itself, without the steps in it. */
  #own(step: Step, path: Path, source: Source, names: Names): void {
    const { repeat, then: _then, else: _else, included: _included, parallel: _parallel, ...rest } = step;
    const { 'for each box': _each, ...own } = rest;
    this.#texts({ ...own, ...(repeat && { repeat: { times: repeat.times } }) }, path, source, names);
    const { boxes } = this.#scenario;
    if (step.box !== undefined && step.box > boxes) {
      this.#problem(
        [...path, 'box'],
        source,
        `there is no box ${step.box}: the scenario asks for ${boxes}, see "boxes"`,
      );
    }
    this.#payment(step, path, source);
    for (const verb of ['generate', 'push', 'pay'] as const)
      this.#content(step[verb]?.content, [...path, verb], source);
  }

  /** Checks that a `settled` comes after a payment. Otherwise it would pass without a look at anything. */
  #payment(step: Step, path: Path, source: Source): void {
    const fault = step.fault === undefined ? undefined : faultOf(step.fault).inject;
    const content = String(step.push?.content ?? step.generate?.content ?? '');
    if (step.pay !== undefined || (fault ?? faultOfContent(content)) === PAYING_FAULT) this.#isPaid = true;
    const { settled, announced } = step.expect ?? {};
    if (settled !== true || announced !== undefined || this.#isPaid) return;
    const fix = 'add a `pay`, or `announced`, which says how many payments there must be, 0 for none';
    this.#problem(
      [...path, 'expect', 'settled'],
      source,
      `nothing is paid before this step, so it would pass by itself: ${fix}`,
    );
  }

  /** Warns of a content that looks like an order of a fault but is none. */
  #content(content: string | number | undefined, path: Path, source: Source): void {
    const text = String(content ?? '');
    const isMeant = text.toUpperCase().startsWith(MAGIC_PREFIX) && !text.includes(OPEN);
    if (!isMeant || faultOfContent(text) !== undefined) return;
    const ofBox = FAULT_NAMES.find((it) => magicContent(it) === text);
    const orderable = FAULT_NAMES.filter((it) => faultKind(it).place !== 'box').map(magicContent);
    const hint =
      ofBox === undefined
        ? suggestion(text, orderable) || '; see the table of faults in the manual'
        : `; a fault of a box is ordered by a step: fault: ${ofBox}`;
    this.#warnings.add(line([...path, 'content'], source, `${text} orders no fault${hint}`));
  }

  #repeat(
    { times: _times, as = COUNTER, steps }: NonNullable<Step['repeat']>,
    path: Path,
    source: Source,
    names: Names,
  ) {
    if (names.isUsed(as)) {
      const words = `\${${as}} is ${names.whatIs(as)} already: give the counter of this repeat another name, as { times: 3, as: ${as === 'i' ? 'k' : 'i'}, steps: … }`;
      this.#problem(path, source, words);
    }
    const inner = names.copy();
    inner.set(as, { isCounter: true });
    this.#list(steps, [...path, 'steps'], source, inner);
    for (const name of inner.changedSince(names)) if (name !== as) names.take(name, inner);
  }

  #parallel(branches: readonly (readonly Step[])[], path: Path, source: Source, names: Names): void {
    // One list may make a payment while another one waits until all payments are settled.
    this.#isPaid ||= branches.some((steps) => isPaidIn(steps));
    const inner = branches.map((steps, index) => {
      const own = names.copy();
      own.set('branch', {});
      this.#list(steps, [...path, index], source, own);
      return own;
    });
    const before = names.copy();
    const makers = Map.groupBy(
      inner.flatMap((own) => own.changedSince(before).map((name) => ({ name, own }))),
      ({ name }) => name,
    );
    for (const [name, [first, second]] of makers) {
      if (second !== undefined) names.lose(name, MADE_TWICE);
      else if (first !== undefined) names.take(name, first.own);
    }
    names.drop('branch');
  }

  #eachBox(steps: readonly Step[], path: Path, source: Source, names: Names): void {
    if (names.isUsed(COUNTER)) {
      const fix = 'give that one another name, with `as`';
      this.#problem(path, source, `\${n} is ${names.whatIs(COUNTER)} already, and would count the boxes: ${fix}`);
    }
    const inner = names.copy();
    inner.set(COUNTER, { isCounter: true });
    this.#list(steps, path, source, inner);
    for (const name of inner.changedSince(names)) if (name !== COUNTER) names.lose(name, MADE_PER_BOX);
  }

  #choice({ then = [], else: otherwise = [] }: Step, path: Path, source: Source, names: Names): void {
    const [yes, no] = [names.copy(), names.copy()];
    this.#list(then, [...path, 'then'], source, yes);
    this.#list(otherwise, [...path, 'else'], source, no);
    const [ofYes, ofNo] = [yes.changedSince(names), no.changedSince(names)];
    for (const name of new Set([...ofYes, ...ofNo])) {
      const isSure = ofYes.includes(name) === ofNo.includes(name) || names.get(name) !== undefined;
      if (isSure) names.set(name, {});
      else names.lose(name, 'is made in one case of the `if` only: use it there, or `set` it before');
    }
  }

  #make(name: string, known: KnownVariable, path: Path, source: Source, names: Names): void {
    if (names.get(name)?.isCounter === true) {
      this.#problem(path, source, `\${${name}} counts here, and is not made anew: choose another name`);
    } else names.set(name, known);
  }

  /** Checks every expression in a value. */
  #texts(value: unknown, path: Path, source: Source, names: Names): void {
    if (typeof value === 'string') this.#text(value, path, source, names);
    if (typeof value !== 'object' || value === null) return;
    for (const [key, it] of Object.entries(value)) {
      this.#texts(it, [...path, Array.isArray(value) ? Number(key) : key], source, names);
    }
  }

  #text(text: string, path: Path, source: Source, names: Names): void {
    const rest = text.replaceAll(IN_TEXT, '');
    if (rest.includes(OPEN))
      this.#problem(path, source, `\`${OPEN}\` begins an expression, which needs its \`}\``, OPEN);
    for (const [written, inner = ''] of text.matchAll(IN_TEXT)) {
      try {
        for (const { name, keys } of variablesIn(parseExpression(inner))) {
          const wrong = this.#unknown(name, keys, names);
          if (wrong !== undefined) this.#problem(path, source, wrong, written);
        }
      } catch (error) {
        if (!(error instanceof PayboxError)) throw error;
        this.#problem(path, source, `${written}: ${error.message}`, written);
      }
    }
  }

  /** Returns why a variable cannot be used; undefined when it can. */
  #unknown(name: string, [key]: readonly string[], names: Names): string | undefined {
    const known = names.get(name);
    const lost = names.whyLost(name);
    if (lost !== undefined) return `\${${name}} ${lost}`;
    if (known === undefined) {
      const later = this.#madeAt.get(name);
      if (later !== undefined) return `\${${name}} is not made yet: ${later} makes it`;
      const hint = suggestion(name, names.all());
      return `\${${name}} is not known here${hint === '' ? `; known are ${sortedNames(names)}` : hint}`;
    }
    const { fields } = known;
    if (key === undefined || fields === undefined || fields.has(key)) return undefined;
    const hint = suggestion(key, fields);
    const parts = fields.size === 0 ? ': it has no parts' : `: it has ${[...fields].join(', ')}`;
    return `\${${name}.${key}} is not there${hint === '' ? parts : hint}`;
  }

  #problem(path: Path, source: Source, words: string, characters?: string): void {
    this.#problems.add(line(path, source, words, characters));
  }
}

function line(path: Path, source: Source, words: string, characters?: string): string {
  const place = characters === undefined ? source.placeOf(path) : source.placeIn(path, characters);
  return `${source.file}:${place.line}:${place.column}: ${path.join('.')}: ${words}`;
}

/** Returns the variables that a step makes. */
function made(step: Step): Readonly<Record<string, KnownVariable>> {
  const { set = {}, as } = step;
  const verb = VERBS.find((it) => step[it] !== undefined);
  const result = verb && resultOf(verb);
  return {
    ...Object.fromEntries(Object.keys(set).map((name) => [name, {}])),
    ...(verb === undefined || result === undefined
      ? {}
      : { [verb]: result, ...(as === undefined ? {} : { [as]: result }) }),
  };
}

function isPaidIn(steps: readonly Step[]): boolean {
  return steps.some((step) => step.pay !== undefined || listsIn(step).some((list) => isPaidIn(list.steps)));
}
