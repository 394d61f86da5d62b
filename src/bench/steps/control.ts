import { explained } from '../../protocol/codes.ts';
import type { Step } from '../vocabulary/steps.ts';
import { spanMs } from '../vocabulary/variables.ts';
import { boxOf, type StepContext, StepFailure } from './context.ts';
import { waitUntilRight } from './waiting.ts';

const ENROL_WITHIN_MS = 20_000;
/** As a box shows it, in a line of its own. */
const CODE = /^[0-9A-HJKMNP-TV-Z]{4}(-[0-9A-HJKMNP-TV-Z]{4}){2}$/m;

/** `wait`: time passes. */
export async function wait(text: string, { target, random, signal }: StepContext): Promise<undefined> {
  const [fromMs, toMs] = spanMs(text) ?? [0, 0];
  await target.time.wait(fromMs + Math.round(random.fraction() * (toMs - fromMs)), signal);
  signal.throwIfAborted();
}

/** `press`: a key of the box. */
export async function press(key: string, context: StepContext): Promise<undefined> {
  await boxOf(context).press(key);
}

/** `enrol`: whoever runs the gateway types what the screen of the box says. */
export async function enrol(args: NonNullable<Step['enrol']>, context: StepContext): Promise<object> {
  const { target, path, signal } = context;
  const box = boxOf(context);
  let code = args.code === undefined ? '' : String(args.code);
  const ask = async () => {
    if (!(await target.gateway.asks(box.terminalCode))) return `${box.terminalCode} does not ask to enrol`;
    if (code === '') code = CODE.exec(await box.text())?.[0] ?? '';
    return code === '' ? `${box.terminalCode} shows no code` : undefined;
  };
  const problem = await waitUntilRight(target.time, ENROL_WITHIN_MS, ask, signal);
  if (problem !== undefined) throw new StepFailure(problem, path);
  const answer = await target.gateway.enrol(box.terminalCode, code);
  context.transcript.add('call', `enrolment of ${box.terminalCode}: ${explained(answer)}`);
  const expected = String(args.answer ?? 'SUCCESS');
  if (answer !== expected) {
    throw new StepFailure(`enrol: expected ${expected}, the answer is ${explained(answer)}`, path);
  }
  return { answer, code };
}
