import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Soak, SoakResult } from './soak.ts';

const FOLDER = 'test/conformance';
const ROOT = join(import.meta.dirname, '../..');

interface TestRow {
  title: string;
  fullName: string;
  status: string;
  failureMessages: string[];
  /** The outcome of each clause, where the test judged a mutant, and why what broke did. */
  meta: { outcomes?: Record<string, string>; reasons?: string[] };
}

interface VitestReport {
  numPassedTests: number;
  testResults: { assertionResults: TestRow[] }[];
}

const CELLS: Readonly<Record<string, string>> = { failed: 'F', differs: 'd', missing: 'm', skipped: '-', passed: '.' };

/** Runs every check against every faulty service and box: each must break its own clauses and no others. */
export const mutants: Soak = {
  name: 'mutants',
  unit: 'matrices of all mutants and all checks',
  amount: 1,
  run: async ({ amount, signal, progress }) => {
    const failures: string[] = [];
    let judged = 0;
    let text = '';
    for (let done = 0; done < amount && !signal.aborted; done += 1) {
      const report = await matrix(signal);
      judged += report.numPassedTests;
      const tests = report.testResults.flatMap(({ assertionResults }) => assertionResults);
      text = matrixOf(tests);
      const failed = tests.filter(({ status }) => status === 'failed');
      failures.push(
        ...failed.map(({ fullName, failureMessages, meta: { reasons = [] } }) =>
          [fullName, ...failureMessages, ...reasons].join('\n'),
        ),
      );
      progress(done + 1, `${judged} judged as expected`);
    }
    return { figures: { 'judged as expected': judged }, failures, text } satisfies SoakResult;
  },
};

async function matrix(signal: AbortSignal): Promise<VitestReport> {
  const folder = await mkdtemp(join(tmpdir(), 'paybox-mutants-'));
  try {
    const report = join(folder, 'report.json');
    await runTests(report, signal);
    return JSON.parse(await readFile(report, 'utf8')) as VitestReport;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function runTests(report: string, signal: AbortSignal): Promise<void> {
  const isMutants = /mutants\.test\.ts$|^(box-tls|independent-service)\.test\.ts$/;
  const files = readdirSync(join(ROOT, FOLDER)).filter((file) => isMutants.test(file));
  const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs');
  const options = ['run', '--config', 'test/vitest.config.ts', '--reporter=json', `--outputFile=${report}`];
  const child = spawn(process.execPath, [vitest, ...options, ...files.map((file) => join(FOLDER, file))], {
    cwd: ROOT,
    env: { ...process.env, PAYBOX_MUTANTS: 'all' },
    stdio: ['ignore', 'ignore', 'inherit'],
    signal,
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', () => resolve());
  });
}

/** A line for each mutant, a column for each clause; what is `.` in a whole column has no mutant that fails it. */
function matrixOf(tests: readonly TestRow[]): string {
  const rows = tests.flatMap(({ title, meta: { outcomes } }) => (outcomes ? [{ title, outcomes }] : []));
  const clauses = [...new Set(rows.flatMap(({ outcomes }) => Object.keys(outcomes)))];
  const height = Math.max(0, ...clauses.map((it) => it.length));
  const heads = Array.from({ length: height }, (_, line) =>
    clauses.map((it) => it.padStart(height)[line] ?? ' ').join(''),
  );
  const lines = rows.map(({ title, outcomes }) => {
    const cells = clauses.map((it) => CELLS[outcomes[it] ?? ''] ?? ' ').join('');
    return `${cells}  ${title.slice(title.indexOf(': ') + 1).trim()}`;
  });
  const isSeen = (clause: string) => rows.some(({ outcomes }) => /failed|differs/.test(outcomes[clause] ?? ''));
  const unseen = clauses.filter((clause) => !isSeen(clause));
  const legend = 'F failed, d differs, - skipped, . passed';
  return [...heads, ...lines, legend, `clauses that no mutant breaks: ${unseen.join(', ') || 'none'}`].join('\n');
}
