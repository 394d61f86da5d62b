import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const PROTOCOL_FOLDER = new URL('../../src/protocol/', import.meta.url);
const PAGES = ['PROTOCOL', 'partner', 'box', 'money', 'dialect', 'cluster', 'threats'];
const GENERATED = {
  clauses: new URL('../CLAUSES.md', import.meta.url),
  codes: new URL('../../src/protocol/CODES.md', import.meta.url),
};
const TEST_FOLDER = fileURLToPath(new URL('..', import.meta.url));
const ID = '(?:BOX-HTTP|[A-Z]{3})-\\d+';

/** A test and the clauses that it holds. `file` is relative to the folder of the tests. */
export interface HoldingTest {
  ids: string[];
  name: string;
  file: string;
}

/** Returns PROTOCOL.md and the pages of clauses that it lists, one after the other. */
export function readProtocol(): string {
  return PAGES.map((page) => readFileSync(new URL(`${page}.md`, PROTOCOL_FOLDER), 'utf8')).join('\n');
}

/** Returns the ids of the clauses that a document defines, in their order: each begins a heading of the third level. */
export function clausesOf(document: string): string[] {
  return [...document.matchAll(new RegExp(`^### (${ID}) · .`, 'gm'))].map((match) => match[1] ?? '');
}

/** Returns the text of one clause, from its heading to the next one; empty if there is none of this id. */
export function clauseText(document: string, id: string): string {
  return new RegExp(`^### ${id} · [\\s\\S]*?(?=\\n#|$(?![\\s\\S]))`, 'm').exec(document)?.[0] ?? '';
}

/** The tests of a source whose names begin with clause ids, read from the text; a name is the first argument of a call. */
export function holdingTestsOf(source: string, file: string): HoldingTest[] {
  const call = new RegExp(`(?<!describe)\\(\\s*(['"\`])((?:${ID} )+)((?:\\\\.|(?!\\1)[^\\\\])*)\\1`, 'g');
  return [...source.matchAll(call)].map((match) => ({
    ids: (match[2] ?? '').trim().split(' '),
    name: (match[3] ?? '').replaceAll(/\\(.)/g, '$1').replaceAll(/\s+/g, ' '),
    file,
  }));
}

/** The same over every test file, in the order of their paths. */
export function allHoldingTests(): HoldingTest[] {
  return globSync('**/*.{test,image}.ts', { cwd: TEST_FOLDER })
    .sort()
    .flatMap((file) => holdingTestsOf(readFileSync(`${TEST_FOLDER}/${file}`, 'utf8'), file));
}

/** The file that lists the tests of each clause: a heading for a clause, a line for a test. */
export function clauseList(clauses: readonly string[], tests: readonly HoldingTest[]): string {
  const parts = clauses.map((id) => {
    const lines = tests.filter((test) => test.ids.includes(id)).map((test) => `- ${test.file}: ${test.name}`);
    return `## ${id}\n\n${lines.join('\n')}\n`;
  });
  const head = `# Clauses and their tests

Each clause of [PROTOCOL.md](../src/protocol/PROTOCOL.md) with the tests that hold it. This file is generated:

    UPDATE_CLAUSES=1 npm test -- test/protocol/clauses.test.ts
`;
  return [head, ...parts].join('\n');
}

/** A generated file of the documents. With UPDATE_CLAUSES=1 it is written first. */
export function generatedFile(name: keyof typeof GENERATED, expected: string): string {
  if (process.env.UPDATE_CLAUSES === '1') writeFileSync(GENERATED[name], expected);
  return readFileSync(GENERATED[name], 'utf8');
}
