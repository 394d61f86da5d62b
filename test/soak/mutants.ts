import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Soak, SoakResult } from './soak.ts';

const FOLDER = 'test/conformance';
const ROOT = join(import.meta.dirname, '../..');

interface VitestReport {
  numPassedTests: number;
  testResults: { assertionResults: { fullName: string; status: string; failureMessages: string[] }[] }[];
}

/** Runs every check against every faulty service and box: each must break its own clauses and no others. */
export const mutants: Soak = {
  name: 'mutants',
  unit: 'matrices of all mutants and all checks',
  amount: 1,
  run: async ({ amount, signal, progress }) => {
    const failures: string[] = [];
    let judged = 0;
    for (let done = 0; done < amount && !signal.aborted; done += 1) {
      const report = await matrix(signal);
      judged += report.numPassedTests;
      const tests = report.testResults.flatMap(({ assertionResults }) => assertionResults);
      const failed = tests.filter(({ status }) => status === 'failed');
      failures.push(...failed.map(({ fullName, failureMessages }) => `${fullName}\n${failureMessages.join('\n')}`));
      progress(done + 1, `${judged} judged as expected`);
    }
    return { figures: { 'judged as expected': judged }, failures } satisfies SoakResult;
  },
};

function matrix(signal: AbortSignal): Promise<VitestReport> {
  const files = readdirSync(join(ROOT, FOLDER)).filter((file) => /mutants\.test\.ts$|^box-tls\.test\.ts$/.test(file));
  const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs');
  const options = ['run', '--config', 'test/vitest.config.ts', '--reporter=json'];
  const child = spawn(process.execPath, [vitest, ...options, ...files.map((file) => join(FOLDER, file))], {
    cwd: ROOT,
    env: { ...process.env, PAYBOX_MUTANTS: 'all' },
    stdio: ['ignore', 'pipe', 'inherit'],
    signal,
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', () => {
      try {
        resolve(JSON.parse(output.slice(output.indexOf('{'))) as VitestReport);
      } catch (error) {
        reject(error);
      }
    });
  });
}
