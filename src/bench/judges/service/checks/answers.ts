import { PayboxError } from '../../../../lib/errors.ts';
import { decodeVietQr } from '../../../../protocol/vietqr.ts';
import { decodePicture, readQr } from '../../../engine/pictures.ts';
import { Breach, Mismatch, PreconditionFailed } from '../../check.ts';
import { type Body, type CheckContext, gap, type ServiceCheck } from '../check-context.ts';
import { type Answer, summaryOf } from '../client.ts';
import { expectFacts, expectFields, expectSame, expectStatus, forEachCase } from '../expectations.ts';
import { recordOf } from '../json.ts';

const TEXTS = [
  'bankName',
  'imgId',
  'transactionId',
  'transactionRefId',
  'qrLink',
  'terminalCode',
  'subTerminalCode',
  'serviceCode',
] as const;

/** The fields of the answer of generate (PROTOCOL.md, clause GEN-4). */
export const answerChecks: readonly ServiceCheck[] = [
  gap('GEN-4', 'the answer has its seventeen fields', [], judgeFields),
  gap('GEN-4', 'existing is 1 for an account in the system, and 0 for another', [], (t) =>
    forEachCase(
      [
        ['1', t.generateBody()],
        ['0', { ...t.generateBody(), bankAccount: 'NOSUCHACCOUNT' }],
      ] as const,
      async ([existing, body]) => {
        const answer = recordOf((await generated(t, body)).json);
        expectSame(`existing for ${body.bankAccount}`, existing, String(answer.existing));
      },
    ),
  ),
  gap('GEN-4', 'qrLink leads to a picture of the QR', [], judgeLink),
];

/** Generates a QR. Throws PreconditionFailed unless the answer is 200: GEN-1 judges that. */
async function generated(t: CheckContext, body: Body): Promise<Answer> {
  const called = await t.generate(body);
  if (called.status !== 200) throw new PreconditionFailed(`needs an answer, but it is ${summaryOf(called)}`);
  return called;
}

async function judgeFields(t: CheckContext): Promise<void> {
  const body = t.generateBody();
  const answer = recordOf((await generated(t, body)).json);
  const { bankCode, bankAccount, userBankName, orderId, amount } = body;
  await expectFacts({ bankAccount, orderId, amount }, answer);
  await expectFields({ bankCode, userBankName, amount: String(amount) }, answer);
  await forEachCase([...TEXTS, 'content', 'qrCode'], async (field) =>
    expectSame(`the type of ${field}`, 'string', typeof answer[field]),
  );
  expectSame('the type of existing', 'number', typeof answer.existing);
  if (!Array.isArray(answer.additionalData)) throw new Mismatch('additionalData is no array');
}

/** Opens qrLink as a browser does, without a login. */
async function judgeLink(t: CheckContext): Promise<void> {
  const { qrLink, qrCode } = recordOf((await generated(t, t.generateBody())).json);
  if (typeof qrLink !== 'string' || !/^https?:\/\//.test(qrLink) || !URL.canParse(qrLink)) {
    throw new Mismatch(`qrLink: expected an address, is ${JSON.stringify(qrLink)}`);
  }
  const called = await t.send({ path: qrLink, method: 'GET' });
  expectStatus(called, 200, qrLink);
  const type = called.headers['content-type'] ?? '';
  if (type.startsWith('text/html'))
    throw new PreconditionFailed('needs a picture: qrLink leads to a page, which the bench does not read');
  const picture = await decodePicture(called.body).catch((error: unknown) => {
    if (error instanceof PayboxError)
      throw new Mismatch(`${qrLink} is ${type || 'of no type'}: ${error.message}`, error);
    throw error;
  });
  const qr = await readQr(picture);
  if (qr === undefined) throw new Mismatch('the picture at qrLink has no QR that can be read');
  if (qr === qrCode) return;
  const reason = `the picture at qrLink has ${qr}, expected ${qrCode}`;
  throw moneyOf(qr) === moneyOf(String(qrCode)) ? new Mismatch(reason) : new Breach(reason);
}

/** Returns whom a QR pays, and how much. */
function moneyOf(qr: string): string | undefined {
  const decoded = decodeVietQr(qr);
  if (!decoded.ok) return undefined;
  const { bin, account, amount } = decoded.value;
  return [bin, account, amount].join();
}
