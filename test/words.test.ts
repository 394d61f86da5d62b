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

  it('comments say the rule and its reason, not "What is …"', () => {
    const riddles = /^\s*(?:\/\*+|\*|\/\/) ?What(?: |ever )/m;
    expect(SOURCES.filter((file) => riddles.test(readFileSync(join(root, file), 'utf8')))).toEqual([]);
  });
});
