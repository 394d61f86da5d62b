import { ConfigError } from '../../lib/errors.ts';
import { explained } from '../../protocol/codes.ts';
import { readEnrolmentCode } from '../../protocol/enrolment.ts';
import { boxCode } from '../../protocol/fields.ts';
import type { EnrolmentView } from '../../protocol/mock-api.ts';
import { AdminClient, type AdminOptions } from '../shared/admin-client.ts';
import { say } from '../shared/output.ts';
import { secretFrom } from '../shared/secrets.ts';

export interface EnrolOptions extends AdminOptions {
  box?: string;
  code?: string;
  reject?: string;
  forget?: string;
  json?: boolean;
}

/** Runs `paybox enrol`: lists boxes that ask to enrol, accepts or rejects one, or deletes a box's secret. */
export async function enrol(options: EnrolOptions): Promise<void> {
  const { box, code, reject, forget } = options;
  if ((box === undefined) !== (code === undefined)) {
    throw new ConfigError('--box and --code: expected both, or neither to list the boxes that ask');
  }
  if ([box, reject, forget].filter((it) => it !== undefined).length > 1) {
    throw new ConfigError('expected one of --box with --code, --reject and --forget');
  }
  const gateway = await AdminClient.open(options);
  if (box !== undefined && code !== undefined) {
    const read = readEnrolmentCode(code === '-' ? secretFrom('--code', code) : code);
    if (read === undefined) throw new ConfigError(`--code ${code}: expected 12 letters and digits, as 7K2M-Q0XA-94TZ`);
    await done(
      gateway,
      `enrolments/${checked('--box', box)}/accept`,
      { code: read },
      `${box} has a secret: it comes online`,
    );
  } else if (reject !== undefined) {
    await done(
      gateway,
      `enrolments/${checked('--reject', reject)}/reject`,
      {},
      `${reject} is turned down: it shows a new code`,
    );
  } else if (forget !== undefined) {
    const path = `boxes/${checked('--forget', forget)}/forget`;
    await done(gateway, path, {}, `${forget} has no secret any more: it shows a code to enrol again`);
  } else {
    list(await gateway.get<EnrolmentView[]>('enrolments'), options.json === true);
  }
}

async function done(gateway: AdminClient, path: string, body: object, said: string): Promise<void> {
  const problem = await gateway.post(path, body);
  say(problem === undefined ? said : `refused: ${explained(problem)}\n  ${ADVICE[problem] ?? ''}`);
  if (problem !== undefined) process.exitCode = 1;
}

const ADVICE: Record<string, string> = {
  WRONG_CODE: 'read the code on the screen of the box again; it changes every 10 minutes',
  CODE_SHARED:
    'make sure that nobody else sees the screen of the box, then type its new code; where the log of the gateway tells of many requests, cut off who sends them',
  E35: 'add the box: paybox admin boxes add CODE --serial CODE; or put it into the file of the gateway, without a secret, and restart that',
  BOX_DISABLED: 'enable it first: paybox admin boxes enable CODE',
  ENROLMENT_CLOSED: "take the box's secret out of the configuration of the gateway, or set enrolment: code there",
};

function list(asking: readonly EnrolmentView[], json: boolean): void {
  if (json) {
    for (const it of asking) say(JSON.stringify(it));
    return;
  }
  if (asking.length === 0) say('no box asks to enrol');
  for (const { terminalCode, serialNumber, requests, from, since, replaces } of asking) {
    const others = requests > 1 ? `, ${requests} requests: only the code identifies the box` : '';
    const again = replaces ? ', has a secret already, which this replaces' : '';
    say(`${terminalCode} ${serialNumber} from ${from.join(', ')} since ${since}${others}${again}`);
  }
  if (asking.length > 0) say('accept one: paybox enrol --box CODE --code XXXX-XXXX-XXXX, the code on its screen');
}

function checked(option: string, terminalCode: string): string {
  if (boxCode.safeParse(terminalCode).success) return terminalCode;
  throw new ConfigError(`${option} ${terminalCode}: expected a terminalCode, as VVB000001`);
}
