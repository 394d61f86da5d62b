import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '..');
const SOURCES = globSync('{src,scripts,device-config}/**/*.{ts,js,html,css,yaml}', { cwd: root });
const DOCUMENTS = ['README.md', ...globSync('{src,test,device-config,.github}/**/*.md', { cwd: root })].filter(
  (file) => file !== 'src/README.md' && file !== 'test/CLAUSES.md',
);

/** The glossary of src/README.md: a word, its meaning, and the words that are not used for it. */
const GLOSSARY = [
  ...readFileSync(join(root, 'src/README.md'), 'utf8').matchAll(/^\| \*\*([^|]+)\*\* \| ([^|]+) \| ([^|]*) \|$/gm),
].map(([, word = '', meaning = '', banned = '']) => ({
  word,
  meaning,
  banned: [...banned.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? ''),
}));

/** The words of a text, in lower case: names are taken apart at their capitals, `toldLink` is told and link. */
function wordsOf(text: string): Set<string> {
  const apart = text.replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2').replaceAll(/([A-Z])([A-Z][a-z])/g, '$1 $2');
  return new Set(apart.toLowerCase().match(/[a-z]+/g) ?? []);
}

const has = (text: string, words: Set<string>, banned: string) =>
  /^[a-z]+$/.test(banned) ? words.has(banned) || words.has(`${banned}s`) : text.includes(banned);

describe('the words of the house', () => {
  it('are in a glossary, each once, with words that are not used', () => {
    const words = GLOSSARY.map(({ word }) => word);
    expect(words.length).toBeGreaterThan(30);
    expect(words.filter((word, index) => words.indexOf(word) !== index)).toEqual([]);
    expect(GLOSSARY.flatMap(({ banned }) => banned).length).toBeGreaterThan(30);
    expect(words.filter((word) => GLOSSARY.some(({ banned }) => banned.includes(word)))).toEqual([]);
  });

  it.each(GLOSSARY.filter(({ banned }) => banned.length > 0))('say $word, not $banned', ({ banned }) => {
    const found = [...SOURCES, ...DOCUMENTS].flatMap((file) => {
      const text = `${file}\n${readFileSync(join(root, file), 'utf8')}`;
      const words = wordsOf(text);
      return banned.filter((it) => has(text, words, it)).map((it) => `${file}: ${it}`);
    });
    expect(found).toEqual([]);
  });
});

const MODULES = globSync('{src,scripts}/**/*.{ts,js}', { cwd: root });

interface Comment {
  at: string;
  text: string;
  /** True if the comment documents a function, a method or an exported class. */
  isOfWork: boolean;
  /** True if the comment explains the lines below it, inside a function. */
  isOfLines: boolean;
}

const FUNCTION = /^\s*(?:export )?(?:async )?function\b|^export (?:abstract )?class /;
const METHOD = /^\s+(?:(?:static|async|override|protected|abstract) )*\*?#?(?!constructor)\w+(?:<[^(]*>)?\(.*[({]$/;

/** Returns the comments of a file that stand on lines of their own. Lists, tables and orders to tools are left out. */
function commentsIn(file: string): Comment[] {
  const lines = readFileSync(join(root, file), 'utf8').split('\n');
  const comments: Comment[] = [];
  for (let from = 0; from < lines.length; from += 1) {
    const first = lines[from]?.trim() ?? '';
    let to = from;
    if (first.startsWith('/*')) while (to < lines.length && !lines[to]?.includes('*/')) to += 1;
    else if (first.startsWith('//')) while (lines[to + 1]?.trim().startsWith('//')) to += 1;
    else continue;
    const bare = lines
      .slice(from, to + 1)
      .map((line) => line.trim().replace(/^(?:\/\*+|\*\/|\*|\/\/) ?|\s*\*\/$/g, ''));
    const text = bare.join(' ').replace(/\*\/$/, '').trim();
    const next = lines[to + 1] ?? '';
    const isOfWork = FUNCTION.test(next) || (METHOD.test(next) && first.startsWith('/**'));
    const isOfLines = first.startsWith('//') && from > 0 && /^ /.test(lines[from] ?? '');
    const isOther = /^(?:biome-ignore|@ts-|#)/.test(text) || bare.some((line) => /^ {2,}\S/.test(line));
    if (text !== '' && !isOther)
      comments.push({ at: `${file}:${from + 1}: ${text.slice(0, 100)}`, text, isOfWork, isOfLines });
    from = to;
  }
  return comments;
}

describe('comments of src and scripts', () => {
  const comments = MODULES.flatMap(commentsIn);
  const failing = (isRight: (comment: Comment) => boolean) => comments.filter((it) => !isRight(it)).map(({ at }) => at);

  it('begin with a capital, a name in backticks, or a number', () => {
    expect(comments.length).toBeGreaterThan(1_000);
    expect(
      failing(({ text }) => /^(?:[\p{Lu}`@"'(…\d]|[a-z]\S*[-A-Z_.\d(]|zlib|systemd|commander|zod)/u.test(text)),
    ).toEqual([]);
  });

  it('end as a sentence does', () => {
    expect(failing(({ text }) => /[.:…?!]["`')]*$/.test(text))).toEqual([]);
  });

  it('of functions, methods and exported classes begin with a verb in the third person', () => {
    const isVerb = /^(?:@throws|[A-Z][a-z]+(?:s|es)\b(?!['’]))/;
    expect(failing(({ text, isOfWork }) => !isOfWork || isVerb.test(text))).toEqual([]);
  });

  it('on lines of code are sentences: they have a verb', () => {
    const verb =
      /\b(?:is|are|was|were|be|has|have|had|does|do|did|can|cannot|could|may|might|must|needs?|will|would|[a-z]{2,}(?:s|ed))\b/;
    expect(failing(({ text, isOfLines }) => !isOfLines || verb.test(text))).toEqual([]);
  });

  it('let programs send, store and report: they do not tell, hear, heed or take anew', () => {
    const old =
      /\b(?:(?:is|are|was|were|be|been|has|have) (?:told|heard|heeded)|tells? (?:of|that|whether)|hears? of|anew|for ever|whosoever|is well|of before|(?<!there )is no (?:file|folder|journal|YAML|JSON))\b/i;
    expect(failing(({ text }) => !old.test(text))).toEqual([]);
  });

  it('do not begin with a question word or with "Whether"', () => {
    expect(
      failing(({ text }) => !/^(?:Whether|Why|What|Whatever|Whoever|Whose|Of|That of|Those of) /.test(text)),
    ).toEqual([]);
  });
});

it('titles of a table of tests name their row', () => {
  const tables = globSync('test/**/*.test.ts', { cwd: root }).flatMap((file) => {
    const titles = readFileSync(join(root, file), 'utf8').matchAll(/\]\)\(\s*(['"`])((?:(?!\1).)*)\1/g);
    return Array.from(titles, ([, , title = '']) => `${file}: ${title}`);
  });
  expect(tables.length).toBeGreaterThan(300);
  expect(tables.filter((it) => !/[%$]/.test(it))).toEqual([]);
});
