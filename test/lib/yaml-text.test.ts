import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../src/lib/errors.ts';
import { parseYaml } from '../../src/lib/yaml-text.ts';

/** What is wrong with a text; empty for one that is right. */
function problemOf(text: string): string {
  try {
    parseYaml(text, 'x.yaml');
    return '';
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
}

const many = (count: number, of: (n: number) => string) => Array.from({ length: count }, (_, n) => of(n)).join('');

describe('a YAML text', () => {
  it.each([
    ['one key twice', 'a: 1\nb: 2\na: 3\n', '3:1'],
    ['one key twice, deep inside', 'a:\n  - b: { c: 1, d: 2, c: 3 }\n', '2:22'],
    ['a number and the same as a text', '1: a\n"1": b\n', '2:1'],
    ['two empty keys', '{ ? , ? }\n', '1:9'],
  ])('does not hold %s', (_what, text, place) => {
    expect(problemOf(text)).toBe(`x.yaml:${place}: not valid YAML: a key is there twice`);
  });

  it.each([
    ['a value', 'a: 1\nb: “secret”\n', '2:4'],
    ['a key', '“a”: 1\n', '1:1'],
    ['one that ends otherwise', 'a: [‘x]\n', '1:5'],
  ])('does not hold curly quotes around %s', (_what, text, place) => {
    expect(problemOf(text)).toBe(
      `x.yaml:${place}: not valid YAML: a text stands in the curly quotes of a word processor`,
    );
  });

  it('may hold curly quotes inside of straight ones, and inside of a text', () => {
    const value = { a: '“x”', b: '“x”', c: 'x “y”' };
    expect(parseYaml(`a: "“x”"\nb: '“x”'\nc: x “y”\n`, 'x.yaml').value).toEqual(value);
  });

  it('may hold one key in several maps', () => {
    expect(parseYaml('a: { a: 1 }\nb: [{ a: 1 }, { a: 2 }]\n', 'x.yaml').value).toEqual({
      a: { a: 1 },
      b: [{ a: 1 }, { a: 2 }],
    });
  });

  // Compared each with each these take a minute.
  it('may hold tens of thousands of keys, and tells one that is there twice', () => {
    const keys = many(40_000, (n) => `k${n.toString(36)},`);
    expect(problemOf(`{${keys}}`)).toBe('');
    expect(problemOf(`{${keys}k0}`)).toMatch(/^x\.yaml:1:\d+: not valid YAML: a key is there twice$/);
  });

  it.each([
    ['lists', '[ '.repeat(5_000)],
    ['lists in lines', '- '.repeat(20_000)],
    ['closed lists', `${'['.repeat(5_000)}${']'.repeat(5_000)}`],
  ])('is told by its name that %s stand in each other too deeply', (_what, text) => {
    expect(problemOf(text)).toMatch(/^x\.yaml(:1:\d+)?: not valid YAML: it is nested too deeply$/);
  });

  it('holds a thousand aliases at most', () => {
    const aliases = (count: number) => many(count, (n) => `- &a${n} 1\n- *a${n}\n`);
    expect(problemOf(aliases(1_000))).toBe('');
    expect(problemOf(aliases(1_001))).toBe('x.yaml:2002:3: not valid YAML: has more than 1000 aliases');
  });

  it.each([
    ['no colon', 'a: 1\nterminalCode VVB000001\nb: 2\n', /2:1: .*no `key: value`/, 'a colon and a space'],
    ['a tab', 'a:\n\tb: 1\n', /2:1: .*begins with a tab/, 'spaces'],
    ['two columns', 'a: 1\n  b: 2\n', /1:4: /, 'in quotes'],
    ['a colon in a value', 'name: Tea: two\n', /1:7: .*second `key: value`/, 'in quotes'],
    ['a reserved sign', 'name: @home\n', /1:7: /, 'in quotes'],
    ['an open quote', 'name: "home\n', /not valid YAML/, 'close the quote'],
    ['an open bracket', 'name: [home\n', /not valid YAML/, '{ or ['],
    ['a backslash', 'name: "C:\\Users"\n', /after a backslash/, 'write'],
    ['a star', 'name: *home\n', /Unresolved alias/, 'in quotes'],
    ['a second document', 'a: 1\n---\nb: 2\n', /second document/, '---'],
    ['one key twice', 'a: 1\na: 2\n', /is there twice/, 'remove'],
  ])('that is wrong by %s says what to do', (_what, text, problem, fix) => {
    let found: unknown;
    try {
      parseYaml(text, 'x.yaml');
    } catch (error) {
      found = error;
    }
    expect(found).toBeInstanceOf(ConfigError);
    expect(found).toMatchObject({ message: expect.stringMatching(problem), fix: expect.stringContaining(fix) });
  });
});
