import { VirtualTime } from '../../../src/bench/engine/test-time.ts';
import { type CheckResult, runChecks } from '../../../src/bench/judges/check.ts';
import { startListener } from '../../../src/bench/judges/service/callback-listener.ts';
import { SERVICE_CHECKS } from '../../../src/bench/judges/service/checks/all.ts';
import { ServiceSubject } from '../../../src/bench/judges/service/subject.ts';
import type { Fault } from './faults.ts';
import { startIndependentService } from './service.ts';
import type { Box, World } from './world.ts';

const SHOP = { username: 'shop', password: 'mật khẩu: 1' };
const SECOND = { username: 'second', password: 'other-secret' };
const ACCOUNT = { bankAccount: '0123456789', bankCode: 'MB', userBankName: 'NGUYEN VAN A' };
const SECOND_ACCOUNT = { bankAccount: 'SHOP2ACC', bankCode: 'VCB', userBankName: 'TRAN THI B' };
const CALLBACK_LOGIN = { kind: 'token', username: 'service', password: 'callback-secret' } as const;
const SIGNING_SECRET = `whsec_${Buffer.from('a secret of thirty-two characters', 'utf8').toString('base64')}`;
const ON = { terminalCode: 'VVB000001', serialNumber: 'VVB900001' };
const UNLINKED = { terminalCode: 'VVB000002', serialNumber: 'VVB900002' };

interface Judging {
  checks?: typeof SERVICE_CHECKS;
  strict?: boolean;
  isBoxOn?: boolean;
}

/** Judges the independent service with these faults, in virtual time. */
export async function judgeIndependent(
  faults: readonly Fault[],
  { checks = SERVICE_CHECKS, strict = false, isBoxOn = true }: Judging = {},
): Promise<CheckResult[]> {
  const time = new VirtualTime();
  const listener = await startListener({ host: '127.0.0.1', port: 0 }, time.clock, CALLBACK_LOGIN);
  const box: Box = { ...ON, account: ACCOUNT.bankAccount, isOn: isBoxOn };
  const login = { ...CALLBACK_LOGIN, url: listener.tokenUrl };
  const callback = { url: listener.url, login, signingSecret: SIGNING_SECRET };
  const world = (isSandbox: boolean): World => ({
    partners: [
      { ...SHOP, accounts: [ACCOUNT.bankAccount], callback },
      { ...SECOND, accounts: [SECOND_ACCOUNT.bankAccount] },
    ],
    accounts: [ACCOUNT, SECOND_ACCOUNT],
    boxes: [box, { ...UNLINKED, isOn: true }],
    isSandbox,
    clock: time.clock,
    attempt: (work) => time.inRealTime(work),
    faults: new Set(faults),
    orders: [],
    pushed: [],
    newest: new Map(),
    isSending: false,
    callbacks: 0,
    pictures: new Map(),
  });
  const service = await startIndependentService(world(true));
  const outside = await startIndependentService(world(false));
  const { baseUrl } = service;
  const subject = new ServiceSubject({
    access: { baseUrl, ...SHOP },
    account: ACCOUNT,
    time,
    tag: 'T000',
    firstAmount: 1_000,
    sandbox: true,
    outside: { baseUrl: outside.baseUrl, ...SHOP },
    box: ON,
    confirm: 'displayed',
    ...(isBoxOn && { boxOn: ON, seeQr: async () => box.shownQr ?? box.shown?.qrCode }),
    unlinkedBox: UNLINKED.terminalCode,
    second: { baseUrl, ...SECOND },
    secondAccount: SECOND_ACCOUNT.bankAccount,
    secondBank: SECOND_ACCOUNT.bankCode,
    listener,
    callbackAuth: CALLBACK_LOGIN,
    signingSecret: SIGNING_SECRET,
    slow: true,
    guessPasswords: true,
  });
  try {
    const lacks = subject.lacks.bind(subject);
    const { signal } = new AbortController();
    return await runChecks(checks, subject, { lacks, strict, time, signal });
  } finally {
    for (const it of [service, outside, listener]) await it.close();
    await time.close();
  }
}
