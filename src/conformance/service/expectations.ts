import { Mismatch } from '../check.ts';
import { type Answer, codeOf, summaryOf } from './client.ts';
import { recordOf } from './json.ts';

/** Throws Mismatch unless the answer has this status. */
export function expectStatus(called: Answer, status: number, what: string): void {
  if (called.status !== status) throw new Mismatch(`${what}: expected ${status}, the answer is ${summaryOf(called)}`);
}

/** Throws Mismatch unless the answer is a refusal with this code, with any status. */
export function expectCode(called: Answer, code: string, what: string): void {
  if (codeOf(called) !== code) throw new Mismatch(`${what}: expected ${code}, the answer is ${summaryOf(called)}`);
}

/** Throws Mismatch unless the answer is a refusal of any kind. */
export function expectRefused(called: Answer, what: string): void {
  const { status } = recordOf(called.json);
  if (called.status < 400 && status !== 'FAILED') {
    throw new Mismatch(`${what}: expected a refusal, the answer is ${summaryOf(called)}`);
  }
}

/** Throws Mismatch unless the HTTP status is 200 and the answer's `status`, if any, is SUCCESS. */
export function expectOk(called: Answer, what: string): void {
  if (called.status !== 200 || codeOf(called) !== undefined) {
    throw new Mismatch(`${what}: expected 200, the answer is ${summaryOf(called)}`);
  }
}

/** Throws Mismatch unless the answer is 200 and SUCCESS. */
export function expectSuccess(called: Answer, what: string): void {
  if (called.status !== 200 || recordOf(called.json).status !== 'SUCCESS') {
    throw new Mismatch(`${what}: expected 200 SUCCESS, the answer is ${summaryOf(called)}`);
  }
}

/** Throws Mismatch unless the answer has a QR. */
export function expectQr(called: Answer, what: string): void {
  expectOk(called, what);
  const { qrCode } = recordOf(called.json);
  if (typeof qrCode !== 'string' || qrCode === '') throw new Mismatch(`${what}: the answer has no qrCode`);
}

export function expectSame(what: string, expected: unknown, actual: unknown): void {
  if (expected === actual) return;
  throw new Mismatch(`${what}: expected ${JSON.stringify(expected)}, is ${JSON.stringify(actual)}`);
}

/** Throws one Mismatch for all fields that differ from the expected ones. */
export function expectFields(expected: object, actual: unknown, whose = ''): Promise<void> {
  return forEachCase(Object.entries(expected), async ([field, value]) => {
    const is = recordOf(actual)[field];
    if (is !== value) throw new Mismatch(`${whose}${field}: expected ${value}, is ${String(is)}`);
  });
}

/** Judges all cases. Throws one Mismatch that names every wrong one. */
export async function forEachCase<T>(cases: readonly T[], judge: (it: T) => Promise<void>): Promise<void> {
  const wrong: Mismatch[] = [];
  for (const it of cases) {
    try {
      await judge(it);
    } catch (error) {
      if (!(error instanceof Mismatch) || error.name !== 'Mismatch') throw error;
      wrong.push(error);
    }
  }
  const [first] = wrong;
  if (first === undefined) return;
  throw wrong.length === 1 ? first : new Mismatch(wrong.map(({ message }) => message).join('; '));
}
