import { spawnSync } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { decode } from 'fast-png';
import { describe, expect, it } from 'vitest';
import { pageOf } from '../../src/bench/engine/reports/page.ts';
import type { Result } from '../../src/bench/engine/reports/result.ts';
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
  it('the page of a run holds no script, and no element that a text brought', () => {
    const page = pageOf(resultsOf(), AT);
    expect(page).not.toMatch(/<script|onerror=alert\(1\)>(?!&)|<img src=x/);
    expect(page).toContain('default-src &#39;none&#39;');
    expect(page.match(/<img /g)).toHaveLength(2);
    expect(page.match(/<table class="latencies">/g)).toHaveLength(1);
    expect(page).toContain('3 more entries had no room.');
  });

  it('the page of a run has a lane for each box, and each step beside its lines', () => {
    const [base] = resultsOf();
    if (base === undefined) throw new Error('no result');
    const picture = Buffer.from([0x89, 0x50, 0x4e, 0x47]);
    const lines = [
      { line: 4, text: '  - for each box:', isOfStep: true },
      { line: 5, text: '      - push: <b>', isOfStep: true },
    ];
    const entries: Result['entries'] = [
      { atMs: 0, kind: 'screen', title: 'VVB000002', picture, qr: null },
      { atMs: 1, kind: 'step', title: 'for each box', lines: lines.slice(0, 2) },
      { atMs: 2, kind: 'step', title: 'push', lines: lines.slice(1), box: 'VVB000001' },
      { atMs: 3, kind: 'status', title: 'VVB000001', detail: { state: 'showing' } },
      { atMs: 4, kind: 'screen', title: 'VVB000001', picture, qr: 'X' },
      { atMs: 4, kind: 'screen', title: 'VVB000001, difference to a.png', picture, qr: null },
      { atMs: 5, kind: 'problem', title: 'unmet' },
    ];
    const failed = { ...base, outcome: 'failed' as const, reason: 'unmet', entries };
    const page = pageOf([{ ...failed, outcome: 'flaky', earlier: [failed] }], AT);
    const trace = /<div class="trace"[\s\S]*?<\/div>/.exec(page)?.[0] ?? '';
    expect([...trace.matchAll(/<th scope="col">(.*?)<\/th>/g)].map(([, name]) => name)).toEqual([
      'time',
      'step',
      'VVB000001',
      'VVB000002',
    ]);
    const rows = [...trace.matchAll(/<tr( class="unmet")?><td>([\s\S]*?)<\/tr>/g)];
    expect(rows.map(([row]) => row.match(/<img/g)?.length ?? 0)).toEqual([1, 0, 2]);
    expect(rows.map(([, unmet]) => unmet !== undefined)).toEqual([false, false, true]);
    expect(rows[1]?.[0]).toMatch(/<span class="line">4<\/span> - for each box:<\/pre>/);
    expect(rows[2]?.[0]).toContain('<span class="line">5</span> - push: &lt;b&gt;</pre>');
    expect(rows[2]?.[0]).toContain('<span class="state">showing</span>');
    // Each picture is there once, in the trace of its run, and the timeline leads to it.
    const ids = [...page.matchAll(/<figure id="(.*?)">/g)].map(([, id]) => id);
    expect(new Set(ids).size).toBe(6);
    expect(page.match(/<img /g)).toHaveLength(6);
    for (const id of ids) expect(page).toContain(`<a href="#${id}">its picture</a>`);
    expect(page).toMatch(/<details><summary class="failed">run 1: failed: unmet<\/summary>/);
  });

  it.skipIf(chromium.missing)(`the page of a run opens without an error in the console${chromium.note}`, async () => {
    const { console, picture } = await opened(pageOf(resultsOf(), AT));
    expect(console).toEqual([]);
    const { width, height } = decode(picture);
    expect([width, height]).toEqual([1000, 1400]);
    await mkdir(KEPT, { recursive: true });
    await writeFile(join(KEPT, 'bench-report.png'), picture);
    process.stdout.write('the report as Chromium shows it: test/.out/bench-report.png\n');
  });

  it.skipIf(chromium.missing)(
    `a style or script in the page of a run would raise an error in the console${chromium.note}`,
    async () => {
      const { console } = await opened(pageOf([], AT).replace('<h1>', '<h1 style="color: red">'));
      expect(console.join()).toMatch(/Content Security Policy/);
    },
  );

  it.skipIf(chromium.missing)(
    `the page of a run shows verdicts, screens and texts as they are${chromium.note}`,
    async () => {
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
      expect(await page.evaluate("getComputedStyle(document.querySelector('td.failed')).color")).toBe(
        'rgb(198, 40, 40)',
      );
    },
  );
});
