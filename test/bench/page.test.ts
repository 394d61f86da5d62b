import { spawnSync } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { decode } from 'fast-png';
import { describe, expect, it } from 'vitest';
import { pageOf } from '../../src/bench/reports/page.ts';
import { openInBrowser } from '../support/browser.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { findProgram, PROGRAMS, without } from '../support/programs.ts';
import { resultsOf } from './results.ts';

const AT = { startedAtMs: Date.UTC(2026, 0, 2, 3, 4, 5) };
const chromium = without(PROGRAMS.chromium);
const START_TIMEOUT_MS = 50_000;
/** What a test leaves for people to look at. */
const KEPT = resolve(import.meta.dirname, '../.out');

async function written(page: string): Promise<{ folder: string; url: string }> {
  const folder = await temporaryFolder();
  await writeFile(join(folder, 'index.html'), page);
  return { folder, url: `file://${join(folder, 'index.html')}` };
}

/** What the browser's console says of a page, and a picture of it. */
async function opened(page: string): Promise<{ console: string[]; picture: Uint8Array }> {
  const { folder, url } = await written(page);
  const picture = join(folder, 'page.png');
  const flags = [
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    '--no-first-run',
    '--enable-logging=stderr',
    '--window-size=1000,1400',
  ];
  const run = spawnSync(
    findProgram(PROGRAMS.chromium) ?? '',
    [...flags, `--user-data-dir=${join(folder, 'profile')}`, `--screenshot=${picture}`, url],
    { encoding: 'utf8', timeout: START_TIMEOUT_MS },
  );
  const lines = run.stderr.split('\n').filter((line) => /:CONSOLE[(:]/.test(line));
  return { console: lines, picture: await readFile(picture) };
}

describe('the page of a run', () => {
  it('holds no script, and no element that a text brought', () => {
    const page = pageOf(resultsOf(), AT);
    expect(page).not.toMatch(/<script|onerror=alert\(1\)>(?!&)|<img src=x/);
    expect(page).toContain('default-src &#39;none&#39;');
    expect(page.match(/<img /g)).toHaveLength(2);
    expect(page.match(/<table class="latencies">/g)).toHaveLength(1);
    expect(page).toContain('3 more entries had no room.');
  });

  it.skipIf(chromium.missing)(`opens without a word in the console${chromium.note}`, async () => {
    const { console, picture } = await opened(pageOf(resultsOf(), AT));
    expect(console).toEqual([]);
    const { width, height } = decode(picture);
    expect([width, height]).toEqual([1000, 1400]);
    await mkdir(KEPT, { recursive: true });
    await writeFile(join(KEPT, 'bench-report.png'), picture);
    process.stdout.write('the report as Chromium shows it: test/.out/bench-report.png\n');
  });

  it.skipIf(chromium.missing)(`would be complained of with a style or script of its own${chromium.note}`, async () => {
    const { console } = await opened(pageOf([], AT).replace('<h1>', '<h1 style="color: red">'));
    expect(console.join()).toMatch(/Content Security Policy/);
  });

  it.skipIf(chromium.missing)(`shows verdicts, screens and texts as they are${chromium.note}`, async () => {
    const { url } = await written(pageOf(resultsOf(), AT));
    const page = await openInBrowser(url);
    const sections = "document.querySelectorAll('section').length";
    await eventually('the page to be there', async () => (await page.evaluate(sections)) === 4);
    expect(await page.evaluate('[...document.images].every((it) => it.complete && it.naturalWidth > 0)')).toBe(true);
    expect(await page.evaluate("document.querySelector('#s2 h2').textContent")).toContain(
      '<img src=x onerror=alert(1)>',
    );
    const [place] = (await page.evaluate(
      "[...document.querySelectorAll('section a')].map((it) => it.getAttribute('href'))",
    )) as string[];
    expect(await page.evaluate(`document.querySelector('${place}').className`)).toBe('problem');
    // A filter that is off hides its rows, without a script.
    const rows = (kind: string) =>
      page.evaluate(`[...document.querySelectorAll('#s2 tr.${kind}')].map((it) => it.checkVisibility()).join()`);
    expect([await rows('message'), await rows('status')]).toEqual(['true', 'false']);
    await page.evaluate("document.querySelector('#s2 label.message input').click()");
    await page.evaluate("document.querySelector('#s2 label.status input').click()");
    expect([await rows('message'), await rows('status')]).toEqual(['false', 'true']);
    expect(await page.evaluate("getComputedStyle(document.querySelector('td.failed')).color")).toBe('rgb(198, 40, 40)');
  });
});
