import type { ServiceCheck } from '../subject.ts';
import { answerChecks } from './answers.ts';
import { boxChecks } from './boxes.ts';
import { callbackFactChecks } from './callback-facts.ts';
import { callbackChecks } from './callbacks.ts';
import { codeChecks, errorChecks } from './errors.ts';
import { generateChecks } from './generate.ts';
import { limitChecks } from './limits.ts';
import { matchChecks } from './matches.ts';
import { payloadChecks } from './payload.ts';
import { paymentChecks, paymentLimits } from './payments.ts';
import { pushChecks } from './push.ts';
import { screenChecks } from './screens.ts';
import { guessChecks, tokenChecks } from './token.ts';

/** Every check of a service, in the order in which they are made. */
export const SERVICE_CHECKS: readonly ServiceCheck[] = [
  ...tokenChecks,
  ...generateChecks,
  ...answerChecks,
  ...payloadChecks,
  ...pushChecks,
  ...boxChecks,
  ...screenChecks,
  ...paymentChecks,
  ...matchChecks,
  ...callbackChecks,
  ...callbackFactChecks,
  ...errorChecks,
  ...limitChecks,
  ...paymentLimits,
  ...codeChecks,
  ...guessChecks,
];
