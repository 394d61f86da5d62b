import { execFileSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '..');
const CELL_MAX = 200;
/** The most lines of a page that a person reads from top to bottom. */
const LINES_MAX = { 'README.md': 120, 'src/protocol/PROTOCOL.md': 150 } as const;
const DOCUMENTS = globSync(['*.md', '{.github,device-config,scripts,src,test}/**/*.md'], { cwd: root }).sort();

const textOf = (file: string) => readFileSync(join(root, file), 'utf8');
/** Removes code, in which nothing is a link, a heading or a table. */
const proseOf = (text: string) => text.replaceAll(/^```[\s\S]*?^```$|^ {4}.*$/gm, '');

/** Returns the cells of the tables of a document that are longer than CELL_MAX characters, shortened. */
function longCells(text: string): string[] {
  const rows = proseOf(text).match(/^ *\|.*\|$/gm) ?? [];
  const cells = rows.flatMap((row) => row.split(/(?<!\\)\|/).map((cell) => cell.trim()));
  return cells.filter((cell) => [...cell].length > CELL_MAX).map((cell) => `${cell.slice(0, 60)}…`);
}

/** Returns the anchors of a document's headings, as GitHub makes them. */
function anchorsOf(text: string): Set<string> {
  const headings = [...proseOf(text).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
  return new Set(headings);
}

/** Returns the links of a document that lead to no file, or to no heading of a file of the project. */
function deadLinks(file: string, text: string): string[] {
  const links = [
    ...proseOf(text)
      .replaceAll(/`[^`\n]*`/g, '')
      .matchAll(/\]\(([^)\s]+)\)/g),
  ].map(([, link = '']) => link);
  return links.filter((link) => {
    if (/^(https?:|mailto:)/.test(link)) return false;
    const [path = '', anchor] = link.split('#');
    const target = path === '' ? file : relative(root, resolve(root, dirname(file), path));
    if (globSync(target, { cwd: root }).length === 0) return true;
    return anchor !== undefined && !anchorsOf(target === file ? text : textOf(target)).has(anchor);
  });
}

const FILES = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).split('\n');

/** Returns the paths in the code of a document's sentences that no file or folder of the project has. */
function deadPaths(text: string): string[] {
  const spans = [...proseOf(text).matchAll(/`([^`\n]+)`/g)].map(([, span = '']) => span);
  const paths = spans.filter((it) =>
    /^[a-z][\w.@-]*\/(?:[\w.@-]+\/)*(?:[\w.@-]+\.(?:ts|js|md|yaml|c|html|json))?$/.test(it),
  );
  return paths.filter((path) => !FILES.some((file) => `/${file}`.includes(`/${path}`)));
}

describe('the documents', () => {
  it.each(DOCUMENTS)('have no cell of a table over 200 characters, and no dead link or path: %s', (file) => {
    const text = textOf(file);
    expect(longCells(text)).toEqual([]);
    expect(deadLinks(file, text)).toEqual([]);
    expect(deadPaths(text)).toEqual([]);
  });

  it.each(Object.entries(LINES_MAX))('have at most as many lines as a person reads at once: %s', (file, max) => {
    expect(textOf(file).trimEnd().split('\n').length).toBeLessThanOrEqual(max);
  });

  it('are searched for long cells and dead links in prose, not in code', () => {
    const long = 'x'.repeat(CELL_MAX + 1);
    expect(longCells(`| a | ${long} |\n    | ${long} |\n\n  | ${'y'.repeat(CELL_MAX)} |`)).toHaveLength(1);
    const text =
      '# One word\n[a](#one-word) [b](#two) [c](README.md) [d](nothing.md) `[e](none.md)`\n    [f](none.md)\n';
    expect(deadLinks('README.md', text)).toEqual(['#two', 'nothing.md']);
    expect(deadPaths('`lib/clock.ts` `lib/` `lib/none.ts` `none/` `/etc/paybox/agent.yaml`')).toEqual([
      'lib/none.ts',
      'none/',
    ]);
  });
});
