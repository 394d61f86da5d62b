import { Breach, Mismatch, NoAnswer } from '../check.ts';
import { type Answer, codeOf, isRefusal, summaryOf } from './client.ts';
import { recordOf } from './json.ts';

/** Throws Mismatch unless the answer has this status: a Breach for a refusal that looks like a success. */
export function expectStatus(called: Answer, status: number, what: string): void {
  if (called.status === status) return;
  const reason = `${what}: expected ${status}, the answer is ${summaryOf(called)}`;
  throw status >= 400 && called.status < 400 ? new Breach(reason) : new Mismatch(reason);
}

/** Throws Mismatch unless the answer is a refusal with this code, with any status: a Breach if it is no refusal. */
export function expectCode(called: Answer, code: string, what: string): void {
  if (codeOf(called) === code) return;
  const reason = `${what}: expected ${code}, the answer is ${summaryOf(called)}`;
  throw isRefusal(called) ? new Mismatch(reason) : new Breach(reason);
}

/** Throws a Breach unless the answer is a refusal of any kind. */
export function expectRefused(called: Answer, what: string): void {
  if (!isRefusal(called)) throw new Breach(`${what}: expected a refusal, the answer is ${summaryOf(called)}`);
}

/**
 * Runs an expectation of a refusal where a tolerant service may take the request, unless told otherwise: that is a
 * choice, not a Breach.
 */
export function mayBeTaken(expect: () => void, isTolerable = true): void {
  try {
    expect();
  } catch (error) {
    throw error instanceof Breach && isTolerable ? new Mismatch(error.message, error) : error;
  }
}

/** Expects a refusal, or nothing of a request that is taken: the specification allows both (PROTOCOL.md, clause LEN). */
export function unlessTaken(called: Answer, expect: () => void): void {
  if (isRefusal(called)) expect();
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
export function expectFields(expected: object, actual: unknown): Promise<void> {
  return forEachCase(Object.entries(expected), async ([field, value]) =>
    expectSame(field, value, recordOf(actual)[field]),
  );
}

type Facts = Readonly<Record<string, string | number>>;

/** Throws one Breach for all fields that say something else than happened. */
export async function expectFacts(expected: Facts, actual: unknown): Promise<void> {
  const wrong = wrongFacts(expected, actual);
  if (wrong.length > 0) throw new Breach(wrong.join('; '));
}

/** Returns the fields that say something else than happened, each in words; a number may also be its decimal text. */
export function wrongFacts(expected: Facts, actual: unknown): string[] {
  return Object.entries(expected).flatMap(([field, value]) => {
    const is = recordOf(actual)[field];
    const isTrue =
      is === value || (typeof value === 'number' && typeof is === 'string' && is !== '' && Number(is) === value);
    return isTrue ? [] : [`${field}: expected ${JSON.stringify(value)}, is ${JSON.stringify(is)}`];
  });
}

/** Judges all cases. Throws one Mismatch that names every wrong one, which is a Breach if one of them is. */
export async function forEachCase<T>(cases: readonly T[], judge: (it: T) => Promise<void>): Promise<void> {
  const wrong: Mismatch[] = [];
  for (const it of cases) {
    try {
      await judge(it);
    } catch (error) {
      if (!(error instanceof Mismatch) || error instanceof NoAnswer) throw error;
      wrong.push(error);
    }
  }
  const [first] = wrong;
  if (first === undefined) return;
  if (wrong.length === 1) throw first;
  const reason = wrong.map(({ message }) => message).join('; ');
  throw wrong.some((it) => it instanceof Breach) ? new Breach(reason) : new Mismatch(reason);
}
