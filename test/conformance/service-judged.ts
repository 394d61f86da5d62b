import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { onTestFinished } from 'vitest';
import { realTime } from '../../src/bench/engine/test-time.ts';
import { type CheckResult, runChecks } from '../../src/bench/judges/check.ts';
import { SERVICE_CHECKS } from '../../src/bench/judges/service/checks/all.ts';
import { ServiceSubject } from '../../src/bench/judges/service/subject.ts';

export const ACCOUNT = { bankAccount: '0123456789', bankCode: 'MB', userBankName: 'NGUYEN VAN A' };

/** Judges whatever is at this address, and does not wait for long. */
export async function judged(baseUrl: string, checks = SERVICE_CHECKS): Promise<CheckResult[]> {
  const subject = new ServiceSubject({
    access: { baseUrl, username: 'shop', password: 'shop-secret' },
    account: ACCOUNT,
    time: realTime,
    tag: 'T000',
    firstAmount: 1_000,
    sandbox: true,
    box: { terminalCode: 'VVB000001', serialNumber: 'VVB900001' },
    boxOn: { terminalCode: 'VVB000001', serialNumber: 'VVB900001' },
    confirm: 'displayed',
    slow: false,
    guessPasswords: false,
    answerTimeoutMs: 500,
  });
  const lacks = subject.lacks.bind(subject);
  const options = { lacks, strict: false, time: realTime, signal: new AbortController().signal };
  return runChecks(checks, subject, options);
}

export function listening(server: Server, close: () => void): Promise<string> {
  onTestFinished(() => {
    server.close();
    close();
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}/vqr`));
  });
}

export function http(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  return listening(server, () => server.closeAllConnections());
}

export const FIRST = SERVICE_CHECKS.slice(0, 1);
export const reasons = (results: readonly CheckResult[]) => new Set(results.map(({ reason }) => reason));
