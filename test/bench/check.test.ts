// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is how scenarios write variables
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkScenario } from '../../src/bench/scenarios/check.ts';
import { parseScenario, readScenario } from '../../src/bench/scenarios/scenario.ts';
import { settingsOf, withSettings } from '../../src/bench/scenarios/settings.ts';
import { temporaryFolder } from '../support/net.ts';
import { scenarios } from './library.ts';

const LIBRARY = join(import.meta.dirname, '../scenarios');
const source = (steps: readonly string[], head = '') => `name: x\n${head}steps:\n${steps.join('\n')}\n`;
const checked = (steps: readonly string[], head = '') => checkScenario(parseScenario(source(steps, head), 'x.yaml'));

describe('a closed set in a step', () => {
  it.each([
    [
      'expect: { state: payd }',
      'steps.0.expect.state: expected a variable, or one of starting, .*; did you mean paid?',
    ],
    [
      'expect: { report: { order: A, status: shwn } }',
      'steps.0.expect.report.status: expected .*; did you mean shown?',
    ],
    ['expect: { screen: payd }', 'steps.0.expect.screen: expected one of .*; did you mean paid?'],
    ['expect: { status: { state: payd } }', 'steps.0.expect.status.state: expected .*; did you mean paid?'],
    ['expect: { stat: paid }', 'steps.0.expect: unknown key stat; did you mean state?'],
    ['press: dismis', 'steps.0.press: expected one of dismiss, repeat, history; did you mean dismiss?'],
    [
      'pay: { amount: 1, content: A, answer: SUCESS }',
      'steps.0.pay.answer: expected SUCCESS, .*; did you mean SUCCESS?',
    ],
    ['push: { amount: 1, content: A, answer: [BOX_OFLINE] }', 'steps.0.push.answer.0: .*; did you mean BOX_OFFLINE?'],
    ['fault: push-lst', 'steps.0.fault: expected one of .*; did you mean push-lost?'],
    ['fault: { inject: push-lst }', 'steps.0.fault: expected one of .*; did you mean push-lost? \\(inject\\)'],
    ['psh: {}', 'steps.0: unknown key psh; did you mean push?'],
  ])('names the word that was meant: %s', (written, problem) => {
    const pattern = new RegExp(`^x\\.yaml:3:\\d+: ${problem.replaceAll('?', '\\?')}`, 'm');
    expect(() => checked([`  - ${written}`])).toThrow(pattern);
  });

  it.each(['E99', '${anything}', 'QR_TOO_DENSE'])('takes the answer %s', (answer) => {
    const steps = ['  - set: { anything: E46 }', `  - pay: { amount: 1, content: A, answer: "${answer}" }`];
    expect(checked(steps).problems).toEqual([]);
  });

  it('a step accepts a state that a variable has', () => {
    expect(checked(['  - set: { want: paid }', '  - expect: { state: "${want}" }']).problems).toEqual([]);
  });
});

const PUSH = '  - push: { amount: 1000, content: A }';
const PAY = '  - pay: { amount: 1000, content: A }';

describe('a scenario that is checked', () => {
  it.each(scenarios())('the scenario %s of the library has no problem', async (name) => {
    expect(checkScenario(await readScenario(join(LIBRARY, name)))).toEqual({ problems: [], warnings: [] });
  });

  it.each<[what: string, steps: string[], problem: string]>([
    [
      'an unknown variable',
      ['  - push: { amount: 1000, content: "A${uniqe}" }'],
      '3:38: steps.0.push.content: ${uniqe} is not known here; did you mean unique?',
    ],
    [
      'a variable like no other',
      ['  - title: of ${whom}', '    wait: 1s'],
      '3:15: steps.0.title: ${whom} is not known here; known are account, box, boxes, seed, unique',
    ],
    [
      'a use before the making',
      ['  - expect: { qr: "${push.qrCode}" }', PUSH],
      '3:20: steps.0.expect.qr: ${push} is not made yet: x.yaml:4 makes it',
    ],
    [
      'an unknown part',
      [PUSH, '  - expect: { qr: "${push.qrcode}" }'],
      '4:20: steps.1.expect.qr: ${push.qrcode} is not there; did you mean qrCode?',
    ],
    [
      'a part of what has none',
      ['  - expect: { text: "${unique.first}" }'],
      '3:22: steps.0.expect.text: ${unique.first} is not there: it has no parts',
    ],
    [
      'a box that there is not',
      ['  - expect: { text: "${boxes.1.terminalCode}" }', '  - { press: history, box: 2 }'],
      '3:22: steps.0.expect.text: ${boxes.1} is not there: it has 0\n4:23: steps.1.box: there is no box 2: the scenario asks for 1, see "boxes"',
    ],
    [
      'a mistake in an expression',
      ['  - push: { amount: "${1000 / 3}", content: A }'],
      '3:22: steps.0.push.amount: ${1000 / 3}: a division says how it rounds: floor(a / b), round(a / b) (halves up) or ceil(a / b)',
    ],
    [
      'an expression without an end',
      ['  - push: { amount: 1000, content: "A${unique" }'],
      '3:38: steps.0.push.content: `${` begins an expression, which needs its `}`',
    ],
    [
      'a counter in a counter',
      ['  - repeat: { times: 2, steps: [{ repeat: { times: 2, steps: [{ wait: 1s }] } }] }'],
      '3:35: steps.0.repeat.steps.0.repeat: ${n} is a counter of the steps around it already: give the counter of this repeat another name, as { times: 3, as: i, steps: … }',
    ],
    [
      'a counter that hides a variable',
      ['  - set: { i: 1 }', '  - repeat: { times: 2, as: i, steps: [{ wait: 1s }] }'],
      '4:5: steps.1.repeat: ${i} is a variable already: give the counter of this repeat another name, as { times: 3, as: k, steps: … }',
    ],
    [
      'boxes that are counted in a repeat',
      ['  - repeat: { times: 2, steps: [{ for each box: [{ wait: 1s }] }] }'],
      '3:35: steps.0.repeat.steps.0.for each box: ${n} is a counter of the steps around it already, and would count the boxes: give that one another name, with `as`',
    ],
    [
      'a counter that is set',
      ['  - repeat: { times: 2, steps: [{ set: { n: 5 } }] }'],
      '3:33: steps.0.repeat.steps.0: ${n} counts here, and is not made anew: choose another name',
    ],
    [
      'a counter after its repeat',
      ['  - repeat: { times: 2, steps: [{ wait: 1s }] }', '  - title: ${n}', '    wait: 1s'],
      '4:12: steps.1.title: ${n} is not known here; known are account, box, boxes, seed, unique',
    ],
    [
      'a name that two lists make',
      [`  - parallel: [[{${PUSH.slice(4)} }], [{${PUSH.slice(4)} }]]`, '  - cancel: { order: "${push.orderId}" }'],
      '4:23: steps.1.cancel.order: ${push} is made in several lists of `parallel`: give each its own name with `as`',
    ],
    [
      'a name of one box',
      ['  - for each box:', `    ${PUSH}`, '  - cancel: { order: "${push.orderId}" }'],
      '5:23: steps.1.cancel.order: ${push} is made for each box: use it there',
    ],
    [
      'a name of one case',
      ['  - if: ${random(1, 2) == 1}', `    then: [{${PUSH.slice(4)} }]`, '  - cancel: { order: "${push.orderId}" }'],
      '5:23: steps.1.cancel.order: ${push} is made in one case of the `if` only: use it there, or `set` it before',
    ],
    [
      'a name for nothing',
      ['  - { wait: 1s, as: later }'],
      '3:17: steps.0.as: this step has no result that could have a name',
    ],
    [
      'settled before any payment',
      [PUSH, '  - expect: { settled: true }', PAY],
      '4:15: steps.1.expect.settled: nothing is paid before this step, so it would pass by itself: add a `pay`, or `announced`, which says how many payments there must be, 0 for none',
    ],
  ])('names the place of %s', (_what, steps, problem) => {
    const { problems, warnings } = checked(steps);
    expect(problems.map((it) => it.replace(/^x\.yaml:/, '')).join('\n')).toBe(problem);
    expect(warnings).toEqual([]);
  });

  it.each<[what: string, steps: string[]]>([
    ['settled after none by intent', ['  - expect: { settled: true, announced: 0 }']],
    ['settled beside who pays', [`  - parallel: [[{ expect: { settled: true } }], [{${PAY.slice(4)} }]]`]],
    ['settled after a fault that pays', ['  - fault: paid-before', PUSH, '  - expect: { settled: true }']],
    [
      'what repeat makes',
      [`  - repeat: { times: 2, steps: [{${PUSH.slice(4)} }] }`, '  - title: ${push.orderId}\n    wait: 1s'],
    ],
    [
      'what one list makes',
      [`  - parallel: [[{${PUSH.slice(4)} }], [{ wait: 1s }]]`, '  - cancel: { order: "${push.orderId}" }'],
    ],
    [
      'what both cases make',
      [
        '  - if: true',
        '    then: [{ set: { a: 1 } }]',
        '    else: [{ set: { a: 2 } }]',
        '  - title: ${a}\n    wait: 1s',
      ],
    ],
    [
      'counters with names',
      ['  - repeat: { times: 2, as: i, steps: [{ repeat: { times: "${i}", steps: [{ wait: 1s }] } }] }'],
    ],
  ])('may have %s', (_what, steps) => {
    expect(checked(steps)).toEqual({ problems: [], warnings: [] });
  });

  it.each([
    ['FAULT PUSH TWIC', 'FAULT PUSH TWIC orders no fault; did you mean FAULT PUSH TWICE?'],
    ['fault push twice', 'fault push twice orders no fault; did you mean FAULT PUSH TWICE?'],
    ['FAULT DISK FULL', 'FAULT DISK FULL orders no fault; a fault of a box is ordered by a step: fault: disk-full'],
    ['FAULT TOLERANCE TEST', 'FAULT TOLERANCE TEST orders no fault; see the table of faults in the manual'],
  ])('warns of the content %s, which orders nothing', (content, warning) => {
    const { problems, warnings } = checked([`  - pay: { amount: 1, content: ${content} }`]);
    expect({ problems, warnings }).toEqual({
      problems: [],
      warnings: [`x.yaml:3:23: steps.0.pay.content: ${warning}`],
    });
  });

  it('a check of a scenario reports every problem of its schema with line and column', () => {
    const wrong = source(['  - push:', '      amount: much', '      contnt: A', '  - wait: 5'], 'boxs: 2\n');
    expect(() => parseScenario(wrong, 'x.yaml')).toThrow(
      [
        'x.yaml:5:7: steps.0.push.amount: expected whole đồng or a variable, as ${amount}',
        'x.yaml:4:3: steps.0.push.content: expected a text or a variable, as ${amount}',
        'x.yaml:6:7: steps.0.push: unknown key contnt; did you mean content?',
        'x.yaml:7:5: steps.1.wait: expected a time with its unit, as 300ms, 5s, 2min or 1h, of a week at most, or between two, as 30s to 5min',
        'x.yaml:2:1: unknown key boxs; did you mean boxes?',
      ].join('\n'),
    );
  });
});

describe('a scenario that includes files', () => {
  async function read(files: Record<string, string>) {
    const folder = await temporaryFolder();
    for (const [name, text] of Object.entries(files)) {
      await mkdir(dirname(join(folder, name)), { recursive: true });
      await writeFile(join(folder, name), text);
    }
    return readScenario(join(folder, 'x.yaml'));
  }
  const including = (name: string) => source([`  - include: ${name}`]);

  it('a scenario that includes files needs their boxes, knows what they make, and names their places', async () => {
    const inner = 'boxes: 3\nvariables: { many: 1 }\nsteps:\n  - push: { amount: "${many}000", content: "${whose}" }\n';
    const scenario = await read({
      'x.yaml': source(['  - include: parts/one.yaml', '  - cancel: { order: "${push.orderId}" }']),
      'parts/one.yaml': 'steps: [{ include: two.yaml }]',
      'parts/two.yaml': inner,
    });
    expect(scenario.boxes).toBe(3);
    const place = 'two.yaml:4:45: steps.0.push.content: ${whose} is not known here';
    expect(checkScenario(scenario).problems).toEqual([expect.stringContaining(place)]);
    const [set] = withSettings([scenario], settingsOf(['whose=A']));
    expect(set && checkScenario(set)).toEqual({ problems: [], warnings: [] });
  });

  it.each<[what: string, files: Record<string, string>, message: string | RegExp]>([
    ['itself', { 'x.yaml': including('x.yaml') }, 'x.yaml:3:5: include: x.yaml includes itself: x.yaml → x.yaml'],
    [
      'one that includes it',
      { 'x.yaml': including('y.yaml'), 'y.yaml': 'steps: [{ include: x.yaml }]' },
      'y.yaml:1:11: include: x.yaml includes itself: x.yaml → y.yaml → x.yaml',
    ],
    [
      'what is not there',
      { 'x.yaml': including('y.yaml') },
      /^x\.yaml:3:5: include: y\.yaml: cannot be read: there is no such file/,
    ],
    [
      'a wrong one',
      { 'x.yaml': including('y.yaml'), 'y.yaml': 'stebs: []' },
      /^y\.yaml:1:1: steps: expected a list.*\ny\.yaml:1:1: unknown key stebs; did you mean steps\?$/,
    ],
    [
      'one with a limit',
      { 'x.yaml': including('y.yaml'), 'y.yaml': source(['  - wait: 1s'], 'limit: 5s\n') },
      'y.yaml:2:1: unknown key limit',
    ],
    ['an absolute path', { 'x.yaml': including('/etc/x.yaml') }, /expected a relative path that ends in \.yaml/],
    [
      'too many',
      {
        'x.yaml': source(Array.from({ length: 15 }, () => '  - include: y.yaml')),
        'y.yaml': `steps:\n${'  - include: z.yaml\n'.repeat(15)}`,
        'z.yaml': 'steps: [{ wait: 1s }]',
      },
      /include: makes more than 200 files$/,
    ],
    [
      'too deep',
      Object.fromEntries(
        Array.from({ length: 10 }, (_, at) => [
          `${at === 0 ? 'x' : at}.yaml`,
          `${at === 0 ? 'name: x\n' : ''}steps: [{ include: ${at + 1}.yaml }]`,
        ]),
      ),
      '8.yaml:1:11: include: is nested deeper than 8 files',
    ],
  ])('is refused with %s', async (_what, files, message) => {
    await expect(read(files)).rejects.toThrow(message);
  });

  it('a scenario that includes files needs a folder', () => {
    expect(() => parseScenario(including('y.yaml'), 'x.yaml')).toThrow('x.yaml:3:5: include: a text has no folder');
  });
});

describe('variables from the command line', () => {
  it.each([
    ['a=5', { a: 5 }],
    ['a=-5', { a: -5 }],
    ['a=007', { a: '007' }],
    ['a=1=2', { a: '1=2' }],
    ['a=true', { a: true }],
    ['a=50.000', { a: '50.000' }],
  ])('%s is read', (written, settings) => {
    expect(settingsOf([written])).toEqual(settings);
  });

  it.each(['a', '=5', 'a=', '5=a'])('%s is refused', (written) => {
    expect(() => settingsOf([written])).toThrow(`--set ${written}: expected NAME=VALUE`);
  });

  it('variables of the command line replace those of the scenario, and must be used', () => {
    const one = parseScenario(source([PUSH], 'variables: { customers: 5 }\n'), 'x.yaml');
    expect(withSettings([one], { customers: 7 })[0]?.variables).toEqual({ customers: 7 });
    expect(() => withSettings([one], { custmers: 7 })).toThrow(
      'the variable custmers is not used by the scenario; did you mean customers?',
    );
  });

  it('variables of the command line are refused where a step would set them again', () => {
    const nested = '  - repeat: { times: 2, steps: [{ set: { what: A } }, { title: "${what}", wait: 1s }] }';
    const one = parseScenario(source([nested]), 'x.yaml');
    expect(() => withSettings([one], { what: 'B' })).toThrow('a step sets what, so --set what would be lost');
  });
});
