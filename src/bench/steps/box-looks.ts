import type { Expectation } from '../vocabulary/expect.ts';
import { screenKindOf } from '../vocabulary/screen-kind.ts';
import { difference, shown } from '../vocabulary/variables.ts';
import { boxOf, type StepContext } from './context.ts';

type BoxExpectation = Pick<Expectation, 'state' | 'screen' | 'text' | 'no text' | 'qr' | 'online' | 'status'>;

/** How a box is not as expected; undefined when it is. Throws PayboxError when it cannot be asked. */
export async function boxProblem(expected: BoxExpectation, context: StepContext): Promise<string | undefined> {
  const { state, online, status, screen, text, qr } = expected;
  if (Object.values(expected).every((it) => it === undefined)) return undefined;
  const { terminalCode } = boxOf(context);
  const asked = { ...(state === undefined ? {} : { state }), ...(online === undefined ? {} : { online }), ...status };
  const hasText = screen !== undefined || text !== undefined || expected['no text'] !== undefined;
  const problem =
    (Object.keys(asked).length === 0 ? undefined : difference(await boxOf(context).status(), asked)) ??
    (hasText ? textProblem(await boxOf(context).text(), expected) : undefined) ??
    (qr === undefined ? undefined : await qrProblem(String(qr), context));
  return problem === undefined ? undefined : `${terminalCode}: ${problem}`;
}

function textProblem(text: string, expected: BoxExpectation): string | undefined {
  const kind = screenKindOf(text);
  if (expected.screen !== undefined && kind !== expected.screen) {
    return `screen: expected ${expected.screen}, is ${kind ?? `an unknown one, ${shown(text)}`}`;
  }
  const missing = [expected.text ?? []].flat().find((words) => !text.includes(String(words)));
  if (missing !== undefined) return `text: expected ${shown(missing)} on the screen, which says ${shown(text)}`;
  const wrong = [expected['no text'] ?? []].flat().find((words) => text.includes(String(words)));
  return wrong === undefined ? undefined : `text: expected no ${shown(wrong)} on the screen, which says ${shown(text)}`;
}

async function qrProblem(expected: string, context: StepContext): Promise<string | undefined> {
  const box = boxOf(context);
  const seen = await context.target.probe.capture(box);
  if (seen === undefined) return 'qr: there is no picture of the screen yet';
  context.transcript.addScreen(box.terminalCode, seen.file, seen.qr);
  if (expected === 'none')
    return seen.qr === undefined ? undefined : `qr: expected none, the screen has ${shown(seen.qr)}`;
  if (seen.qr === expected) return undefined;
  return `qr: expected ${shown(expected)}, ${seen.qr === undefined ? (seen.noQrReason ?? 'none is read on the screen') : `the screen has ${shown(seen.qr)}`}`;
}
