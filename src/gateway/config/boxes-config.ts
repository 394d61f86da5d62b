import { z } from 'zod';
import { type FilePlace, readSecretFile } from '../../lib/config-file.ts';
import { isPlainText } from '../../lib/text.ts';
import { macAddress, macDigits } from '../../protocol/dialect.ts';
import { bankAccount, boxCode, freeText } from '../../protocol/fields.ts';
import { strongSecret } from '../../protocol/secret.ts';

/** A message of this length, with the longest amount, content and time, still fits the packet of clause VQD-4. */
const PAID_MESSAGE_MAX = 120;

/** The name of a login at another program's server. */
export const loginName = z.string().regex(/^[^:\s]{1,64}$/, '1 to 64 characters without spaces and colons');
/** The name of a login at this gateway. People read it in lists and logs. */
export const username = loginName.refine(
  isPlainText,
  'expected no control character, no invisible one and no half character',
);
export const password = z.string().min(1).max(200);

export const box = z.strictObject({
  terminalCode: boxCode,
  serialNumber: boxCode,
  secret: strongSecret.optional().describe('without one the box enrols (PROTOCOL.md, clause ENR-1)'),
  account: bankAccount.optional().describe('the linked account, which gets the money; without one the box is unlinked'),
  dialect: z
    .enum(['paybox', 'vietqr'])
    .default('paybox')
    .describe('vietqr: a box of another maker that speaks the public MQTT dialect (PROTOCOL.md, clause VQD)'),
  macAddr: macAddress.optional().describe('with dialect vietqr: the MAC address by which the box enrols'),
  confirm: z
    .enum(['displayed', 'accepted', 'sent'])
    .optional()
    .describe('with dialect vietqr, whose boxes confirm nothing: sent (default); with the others pushes are refused'),
});

const salt = z
  .string()
  .regex(/^[ -~]{1,64}$/, '1 to 64 ASCII characters')
  .describe('shared by all these boxes; from their maker');

const fromFile = z.string().min(1).max(1000).optional().describe('a file that holds it instead');

/** Requires each of these texts, given either directly or by a file. */
function checkGiven(names: readonly string[]) {
  return (given: Record<string, unknown>, context: z.RefinementCtx): void => {
    for (const name of names) {
      if ((given[name] === undefined) !== (given[`${name}File`] === undefined)) continue;
      context.addIssue({ code: 'custom', path: [name], message: `expected either ${name} or ${name}File` });
    }
  };
}

export const vietqrBoxes = z
  .strictObject({
    checkSumSalt: salt.optional(),
    checkSumSaltFile: fromFile,
    boxIdSalt: salt.optional(),
    boxIdSaltFile: fromFile,
    login: z
      .strictObject({ username, password: password.optional(), passwordFile: fromFile })
      .superRefine(checkGiven(['password']))
      .transform(({ password = '', ...rest }) => ({ ...rest, password }))
      .describe('the login at the broker that boxes and hosts share'),
    paidMessage: freeText(PAID_MESSAGE_MAX)
      .refine((it) => it.includes('{amount}'), 'expected a text with {amount}, and maybe {content} and {time}')
      .default('Đã nhận {amount} đồng, nội dung {content}, lúc {time}')
      .describe('the text that such a box speaks for a payment'),
  })
  .superRefine(checkGiven(['checkSumSalt', 'boxIdSalt']))
  .transform(({ checkSumSalt = '', boxIdSalt = '', ...rest }) => ({ ...rest, checkSumSalt, boxIdSalt }));

type VietqrBoxes = z.output<typeof vietqrBoxes>;

/** Replaces the `…File` options by the contents of their files. Undefined without such options. Throws ConfigError. */
export function withSecretsOfFiles(
  { checkSumSaltFile, boxIdSaltFile, login: { passwordFile, ...login }, ...given }: VietqrBoxes,
  at: FilePlace,
): z.input<typeof vietqrBoxes> | undefined {
  if ([checkSumSaltFile, boxIdSaltFile, passwordFile].every((it) => it === undefined)) return undefined;
  const read = (key: string, file: string | undefined, value: string) =>
    file === undefined ? value : readSecretFile({ option: `vietqrBoxes.${key}File`, file }, at, password);
  return {
    ...given,
    checkSumSalt: read('checkSumSalt', checkSumSaltFile, given.checkSumSalt),
    boxIdSalt: read('boxIdSalt', boxIdSaltFile, given.boxIdSalt),
    login: { ...login, password: read('login.password', passwordFile, login.password) },
  };
}

export type Complain = (path: (string | number)[], message: string) => void;

interface Boxes {
  mqtt: { username?: string | undefined } | null;
  boxes: z.output<typeof box>[];
  vietqrBoxes?: z.output<typeof vietqrBoxes> | undefined;
}

/** Complains about wrong options of boxes of the dialect vietqr. Such a box has no own secret, and needs MQTT. */
export function checkDialects({ boxes, vietqrBoxes, mqtt }: Boxes, complain: Complain): void {
  const macs = new Set<string>();
  for (const [i, { dialect, macAddr, secret, confirm }] of boxes.entries()) {
    const at = (key: string) => ['boxes', i, key];
    if (dialect === 'paybox') {
      if (macAddr !== undefined) complain(at('macAddr'), 'expected dialect: vietqr beside it');
      if (confirm !== undefined)
        complain(at('confirm'), "expected dialect: vietqr beside it, or the gateway's confirm");
      continue;
    }
    if (macAddr === undefined) complain(at('macAddr'), 'expected the MAC address of a box with dialect: vietqr');
    if (secret !== undefined) complain(at('secret'), 'expected none: boxes with dialect: vietqr share one login');
    if (vietqrBoxes === undefined)
      complain(at('dialect'), 'expected vietqrBoxes: the salts and the login of such boxes');
    if (mqtt === null) complain(at('dialect'), 'expected mqtt: such boxes speak nothing else');
    const digits = macDigits(macAddr ?? '');
    if (macAddr !== undefined && macs.has(digits))
      complain(at('macAddr'), `the MAC address ${macAddr} is already taken`);
    macs.add(digits);
  }
  const { username } = vietqrBoxes?.login ?? {};
  if (
    username !== undefined &&
    (boxCode.safeParse(username).success || ['gateway', mqtt?.username].includes(username))
  ) {
    complain(['vietqrBoxes', 'login', 'username'], 'expected a name that is not of a box or of the gateway');
  }
}
