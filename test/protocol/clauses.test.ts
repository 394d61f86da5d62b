import { expect, it } from 'vitest';
import {
  allHoldingTests,
  clauseList,
  clausesOf,
  clauseText,
  generatedFile,
  holdingTestsOf,
  readProtocol,
} from './document.ts';

const CLAUSES = clausesOf(readProtocol());
const TESTS = allHoldingTests();

it('finds the clauses of a document, and the text of each, by its headings only', () => {
  const document = [
    '## SND',
    '### SND-1 · One',
    'a, see SND-9',
    '',
    '### BOX-HTTP-2 · Two',
    'b',
    '- LIM-3',
    '| LIM-4 |',
  ].join('\n');
  expect(clausesOf(document)).toEqual(['SND-1', 'BOX-HTTP-2']);
  expect(clauseText(document, 'SND-1')).toBe('### SND-1 · One\na, see SND-9\n');
  expect(clauseText(document, 'BOX-HTTP-2')).toContain('LIM-4');
  expect(clauseText(document, 'LIM-3')).toBe('');
});

it('finds the tests of a source that hold clauses', () => {
  const [one, two] = ['SND-4', 'BOX-HTTP-1'];
  const source = [
    `it('${one} ${two} says \\'no\\'', () => {});`,
    `it.each([[1, 'x']])(\n  "${one} takes %s",`,
    `it.skipIf(missing)(\`${two} works\${note}\`, async () => {`,
    `describe('${one} is a chapter', () => {`,
    `it('is like ${one} in this', () => {`,
  ];
  expect(holdingTestsOf(source.join('\n'), 'a.test.ts')).toEqual([
    { ids: [one, two], name: "says 'no'", file: 'a.test.ts' },
    { ids: [one], name: 'takes %s', file: 'a.test.ts' },
    { ids: [two], name: 'works$' + '{note}', file: 'a.test.ts' },
  ]);
});

it('no clause id is given twice', () => {
  expect(CLAUSES.length).toBeGreaterThan(60);
  expect(CLAUSES.filter((id, index) => CLAUSES.indexOf(id) !== index)).toEqual([]);
});

it('every clause is held by a test', () => {
  const held = new Set(TESTS.flatMap((test) => test.ids));
  expect(CLAUSES.filter((id) => !held.has(id))).toEqual([]);
});

it('every clause that a test names exists', () => {
  const strangers = TESTS.flatMap((test) =>
    test.ids.filter((id) => !CLAUSES.includes(id)).map((id) => `${test.file}: ${id} ${test.name}`),
  );
  expect(strangers).toEqual([]);
});

it('CLAUSES.md lists the tests of each clause (UPDATE_CLAUSES=1 writes it)', () => {
  const expected = clauseList(CLAUSES, TESTS);
  expect(generatedFile('clauses', expected)).toBe(expected);
});
