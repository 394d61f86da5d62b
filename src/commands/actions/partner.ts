import { z } from 'zod';
import { PartnerClient } from '../../bench/engine/clients/partner.ts';
import { isTestable } from '../../gateway/money/content.ts';
import { ConfigError, PayboxError } from '../../lib/errors.ts';
import { askHttp, parseJson } from '../../lib/http-client.ts';
import { systemRandom } from '../../lib/random.ts';
import { explained } from '../../protocol/codes.ts';
import { LIMITS } from '../../protocol/fields.ts';
import { trustAuthorityIn } from '../shared/authority.ts';
import { remark, say } from '../shared/output.ts';
import { secretFrom } from '../shared/secrets.ts';

/** The path prefix of the service, unless the address has one. */
const BASE_PATH = '/vqr';
const HEALTH_LIMITS = { timeoutMs: 5_000, bytesMax: 100_000 };
const liveHealth = z.object({ mode: z.literal('live') });

interface PartnerOptions {
  gateway: string;
  ca?: string;
  username: string;
  passwordFile?: string;
  account: string;
  bank: string;
  json?: boolean;
}

/** Runs `paybox push`: token, generate, send-qr. The exit code is 1 if the service refuses. */
export async function push(
  options: PartnerOptions & { amount: number; content: string; order?: string; box: string; holder: string },
): Promise<void> {
  const print = printer(options.json === true);
  const partner = partnerOf(options);
  const token = await partner.token();
  print('token', { token_type: 'Bearer' }, 'token taken');
  const orderId = options.order ?? `DH-${systemRandom.uuid().slice(0, 8)}`;
  const account = { bankAccount: options.account, bankCode: options.bank };
  const { amount, content } = options;
  if (!isTestable(content)) {
    const most = LIMITS.testCallbackContentMax;
    remark(`\`paybox pay\` will not take this content: it takes 1 to ${most} letters, digits and spaces`);
  }
  const generated = await partner.generate(token, {
    ...account,
    amount,
    content,
    orderId,
    userBankName: options.holder,
  });
  const made = generated.content === content ? '' : ` (pay it with the content ${generated.content})`;
  print('generate', generated, `order ${orderId}: ${generated.qrCode}${made}`);
  const sent = await partner.sendQr(token, {
    ...account,
    amount: generated.amount,
    content: generated.content,
    qrCode: generated.qrCode,
    terminalCode: options.box,
    serialNumber: '',
    orderId,
  });
  const shown = sent.status === 'SUCCESS';
  print('send-qr', sent, shown ? `SUCCESS: ${options.box} shows the QR` : `FAILED: ${explained(sent.message)}`);
  if (!shown) process.exitCode = 1;
}

/** Runs `paybox pay`: the sandbox's test callback. The exit code is 1 if the service refuses. */
export async function pay(
  options: PartnerOptions & { amount: number; content: string; debit?: boolean },
): Promise<void> {
  const print = printer(options.json === true);
  const partner = partnerOf(options);
  const token = await partner.token().catch((error: unknown) => whyNoTest(options.gateway, error));
  const answer = await partner.testCallback(token, {
    bankAccount: options.account,
    content: options.content,
    amount: options.amount,
    transType: options.debit === true ? 'D' : 'C',
  });
  const paid = answer.status === 'SUCCESS';
  print('pay', answer, paid ? `SUCCESS: transaction ${answer.message}` : `FAILED: ${explained(answer.message)}`);
  if (answer.warning !== undefined) remark(answer.warning);
  if (!paid) process.exitCode = 1;
}

/** Throws the refusal of a token, in words for somebody who wants a test callback: a live gateway has none for anybody. */
async function whyNoTest(gateway: string, error: unknown): Promise<never> {
  if (!(error instanceof PayboxError) || error.code !== 'E74') throw error;
  const { code, severity, message } = error;
  if (!(await isLive(gateway))) {
    const fix = 'name a partner with --username and --password-file';
    throw new PayboxError(code, message, { severity, fix, cause: error });
  }
  const fix = 'only money pays its orders; a sandbox takes test callbacks';
  throw new PayboxError('E75', `${gateway} is live: it has no test callback`, { severity, fix, cause: error });
}

async function isLive(gateway: string): Promise<boolean> {
  const answer = await askHttp(new URL('/healthz', gateway), {}, HEALTH_LIMITS).catch(() => undefined);
  return answer !== undefined && liveHealth.safeParse(parseJson(answer.body)).success;
}

function partnerOf(options: PartnerOptions): PartnerClient {
  const { gateway, passwordFile } = options;
  trustAuthorityIn(options);
  const parsed = URL.parse(gateway);
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) {
    throw new ConfigError(`--gateway ${gateway}: expected an address as http://127.0.0.1:8800`);
  }
  const path = parsed.pathname === '/' ? BASE_PATH : parsed.pathname.replace(/\/+$/, '');
  const fromFile = passwordFile === undefined ? undefined : secretFrom('--password-file', passwordFile);
  const password = fromFile ?? process.env.PAYBOX_PASSWORD ?? 'demo-secret';
  return new PartnerClient({ baseUrl: `${parsed.origin}${path}`, username: options.username, password });
}

/** Prints each answer for people, or as JSON lines. */
function printer(json: boolean): (step: string, answer: object, line: string) => void {
  return (step, answer, line) => {
    say(json ? JSON.stringify({ step, ...answer }) : `${step.padEnd(10)}${line}`);
  };
}
