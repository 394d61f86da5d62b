// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is how scenarios write variables
import { readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { parseScenario, readScenario, scenarioSchema } from '../../src/bench/scenarios/scenario.ts';
import { VERBS } from '../../src/bench/scenarios/steps.ts';
import { ConfigError } from '../../src/lib/errors.ts';
import { FAULT_NAMES } from '../../src/protocol/faults.ts';
import { temporaryFolder } from '../support/net.ts';

const LIBRARY = resolve(import.meta.dirname, '../scenarios');
const SCHEMA_FILE = join(LIBRARY, 'scenario.schema.json');
const files = readdirSync(LIBRARY).filter((name) => name.endsWith('.yaml'));

function problemOf(source: string): string {
  try {
    parseScenario(source, 'test.yaml');
  } catch (error) {
    // The tables below say lines; columns have a table of their own.
    if (error instanceof ConfigError) return error.message.replaceAll(/^(test\.yaml:\d+):\d+: (?!not valid)/gm, '$1: ');
    throw error;
  }
  return 'none';
}

describe('the scenarios that come with the program', () => {
  it.each(files)('the scenario %s is valid, and says what it is for', async (name) => {
    const { about, steps } = await readScenario(join(LIBRARY, name));
    expect(about).toMatch(/\.$/);
    expect(steps.length).toBeGreaterThan(0);
  });

  it.each(files)('the scenario %s names the schema, and an editor finds it valid too', (name) => {
    const text = readFileSync(join(LIBRARY, name), 'utf8');
    expect(text.split('\n', 1)).toEqual(['# yaml-language-server: $schema=./scenario.schema.json']);
    const validate = new Ajv2020({ strict: false }).compile(JSON.parse(readFileSync(SCHEMA_FILE, 'utf8')));
    validate(parse(text));
    expect(validate.errors).toBeNull();
  });

  it('the schema beside the scenarios is the one of the program', () => {
    const published = JSON.parse(readFileSync(SCHEMA_FILE, 'utf8')) as unknown;
    expect(published, 'paybox config schema scenario > test/scenarios/scenario.schema.json').toEqual(
      z.toJSONSchema(scenarioSchema, { io: 'input' }),
    );
  });

  it('the scenarios use every verb', () => {
    const text = [...files, 'parts/rush-customer.yaml']
      .map((name) => readFileSync(join(LIBRARY, name), 'utf8'))
      .join('\n');
    const unused = VERBS.filter((verb) => !text.includes(` ${verb}:`));
    expect(unused).toEqual([]);
  });

  it('the scenarios make every fault that there is', () => {
    const text = files.map((name) => readFileSync(join(LIBRARY, name), 'utf8')).join('\n');
    const made = (fault: string) => new RegExp(`(fault|inject): ${fault}\\b(?!-)`).test(text);
    expect(FAULT_NAMES.filter((fault) => !made(fault))).toEqual([]);
  });
});

const oneOfFaults = (before: string, after = '') =>
  `test.yaml:3: steps.0.${before} one of ${FAULT_NAMES.join(', ')}${after}`;

describe('a scenario that is wrong', () => {
  const steps = (...lines: string[]) => ['name: x', 'steps:', ...lines].join('\n');

  it.each([
    ['no steps', 'name: x', 'test.yaml:1: steps: expected a list, but it is missing'],
    ['no name', 'steps: [{ wait: 1s }]', 'test.yaml:1: name: expected a text, but it is missing'],
    ['an unknown key', `${steps('  - wait: 1s')}\nboxxes: 2`, 'test.yaml:4: unknown key boxxes; did you mean boxes?'],
    [
      'an unknown verb',
      steps('  - wait: 1s', '  - puch: {}'),
      `test.yaml:4: steps.1: unknown key puch; did you mean push?\ntest.yaml:4: steps.1: expected exactly one of ${VERBS.join(', ')}`,
    ],
    [
      'a time without its unit',
      steps('  - expect: { state: idle, for: 5 }'),
      'test.yaml:3: steps.0.expect.for: expected a time with its unit, as 300ms, 5s, 2min or 1h, of a week at most',
    ],
    [
      'a time beyond a week',
      steps('  - expect: { state: idle, for: 200h }'),
      'test.yaml:3: steps.0.expect.for: expected a time with its unit, as 300ms, 5s, 2min or 1h, of a week at most',
    ],
    ...['5', '200h', '5min to 30s', '1s to 2s to 3s', '1s to 200h'].map((wait): [string, string, string] => [
      `a wait of ${wait}`,
      steps(`  - wait: ${wait}`),
      'test.yaml:3: steps.0.wait: expected a time with its unit, as 300ms, 5s, 2min or 1h, of a week at most, or between two, as 30s to 5min',
    ]),
    [
      'an amount in words',
      steps('  - push:', '      amount: much', '      content: X'),
      'test.yaml:4: steps.0.push.amount: expected whole đồng or a variable, as ${amount}',
    ],
    [
      'a push without its content',
      steps('  - push: { amount: 1 }'),
      'test.yaml:3: steps.0.push.content: expected a text or a variable, as ${amount}',
    ],
    [
      'nothing to expect',
      steps('  - expect: { within: 5s }'),
      'test.yaml:3: steps.0.expect: expected something to expect',
    ],
    [
      'no field of a status to expect',
      steps('  - expect: { status: {} }'),
      'test.yaml:3: steps.0.expect.status: expected at least one field',
    ],
    [
      'a number for a text on the screen',
      steps('  - expect: { text: 50000 }'),
      'test.yaml:3: steps.0.expect.text: expected a text, in quotes if it is a number, or a list of them',
    ],
    [
      'a screen that there is not',
      steps('  - expect: { screen: green }'),
      /^test\.yaml:3: steps\.0\.expect\.screen: expected one of starting, .*, idle, payment, /,
    ],
    [
      'two faults in one',
      steps('  - fault: { box: "off", gateway: "off" }'),
      'test.yaml:3: steps.0.fault: expected one of inject, end, box, gateway and partner',
    ],
    ['a fault by its name', steps('  - fault: push-twice'), 'none'],
    ['a fault with more', steps('  - fault: { inject: box-slow, times: 2, for: 3s, chance: 0.5, content: A }'), 'none'],
    ['the end of a fault', steps('  - fault: { end: push-twice }', '  - fault: { end: "${fault.id}" }'), 'none'],
    ['a fault that there is not', steps('  - fault: puch'), oneOfFaults('fault: expected')],
    [
      'a fault to inject that there is not',
      steps('  - fault: { inject: puch }'),
      oneOfFaults('fault: expected', ' (inject)'),
    ],
    [
      'a fault to end that there is not',
      steps('  - fault: { end: puch }'),
      oneOfFaults('fault.end: expected all, a fault of before as ${fault.id}, or'),
    ],
    [
      'a fault that lasts more than a day',
      steps('  - fault: { inject: box-slow, for: 25h }'),
      'test.yaml:3: steps.0.fault.for: expected a day at most',
    ],
    [
      'more of what is not injected',
      steps('  - fault: { end: all, times: 2 }'),
      'test.yaml:3: steps.0.fault: times, for, chance, content belong to inject',
    ],
    ['off, which YAML 1.1 reads as false, is a text here', steps('  - fault: { box: off }'), 'none'],
    [
      'deep inside',
      steps('  - repeat:', '      times: 2', '      steps:', '        - wait: 1s', '        - press: hard'),
      'test.yaml:7: steps.0.repeat.steps.1.press: expected one of dismiss, repeat, history',
    ],
    [
      'a list of one in parallel',
      steps('  - parallel: [[{ wait: 1s }]]'),
      /^test\.yaml:3: steps\.0\.parallel: expected a list of at least 2 items/,
    ],
    [
      'steps that hold themselves',
      'name: x\nsteps: &all\n  - wait: 1s\n  - repeat: { times: 2, steps: *all }',
      'test.yaml:4: steps.1.repeat.steps: contains itself',
    ],
    ['nothing', '# a comment only', 'test.yaml: is empty'],
    [
      'two documents',
      `${steps('  - wait: 1s')}\n---\n${steps('  - wait: 1s')}`,
      'test.yaml:4:1: not valid YAML: a second document begins with ---, expected one',
    ],
    [
      'a variable between braces without quotes',
      steps('  - expect: { qr: ${push.qrCode} }'),
      /^test\.yaml:3:20: not valid YAML: /,
    ],
    [
      'an amount with dots between its thousands',
      steps('  - wait: 1s', '  - push: { amount: 50.000, content: A }'),
      'test.yaml:4: steps.1.push.amount: 50.000 is read as the number 50',
    ],
    [
      'a content that begins with zeros',
      steps('  - repeat: { times: 2, steps: [{ push: { amount: 5, content: 007 } }] }'),
      'test.yaml:3:63: not valid YAML: a number that begins with 0 would lose it',
    ],
    ['numbers as they are written', steps('  - expect: { golden: a.png, tolerance: 0.001, announced: 0 }'), 'none'],
    [
      'rounds of rounds without end',
      `boxes: 2\n${steps('  - for each box:', '      - repeat: { times: 10000, steps: [{ repeat: { times: 100, steps: [{ wait: 1s }] } }] }')}`,
      'test.yaml: makes 2020003 steps with its repeats, expected at most 1000000',
    ],
    [
      'as many rounds as there may be',
      steps('  - repeat: { times: 9900, steps: [{ repeat: { times: 100, steps: [{ wait: 1s }] } }] }'),
      'none',
    ],
    ['no YAML', 'name: [', /^test\.yaml:1:8: not valid YAML: /],
    ['too long', `name: ${'x'.repeat(200_000)}`, 'test.yaml: has 200006 characters, expected at most 200000'],
  ])('%s', (_what, source, message) => {
    if (typeof message === 'string') expect(problemOf(source)).toBe(message);
    else expect(problemOf(source)).toMatch(message);
  });

  it('a scenario with two verbs in one step is refused', () => {
    expect(problemOf(steps('  - wait: 1s', '    press: dismiss'))).toBe(
      `test.yaml:3: steps.0: expected exactly one of ${VERBS.join(', ')}`,
    );
  });

  it('a scenario in another encoding is refused', async () => {
    const path = join(await temporaryFolder(), 'x.yaml');
    await writeFile(path, Buffer.from('name: Cà phê\nsteps:\n  - wait: 1s\n', 'latin1'));
    await expect(readScenario(path)).rejects.toThrow(/^x\.yaml:\d+: has letters that are not UTF-8$/);
    await writeFile(path, '\ufeffname: Cà phê\r\nsteps:\r\n  - wait: 1s\r\n');
    expect((await readScenario(path)).name).toBe('Cà phê');
  });

  it('a scenario that is not there is refused', async () => {
    await expect(readScenario('/nowhere/x.yaml')).rejects.toThrow(
      /^\/nowhere\/x\.yaml: cannot be read: there is no such file/,
    );
  });
});
