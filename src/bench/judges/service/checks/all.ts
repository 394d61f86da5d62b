import type { NotJudged } from '../../suite.ts';
import { DIALECT_NOT_JUDGED, THREATS_NOT_JUDGED } from '../../suite.ts';
import type { ServiceCheck } from '../check-context.ts';
import { amountChecks } from './amounts.ts';
import { answerChecks } from './answers.ts';
import { boxChecks } from './boxes.ts';
import { callbackChecks } from './callbacks.ts';
import { codeChecks, errorChecks, leakCheck } from './errors.ts';
import { everyCallbackChecks } from './every-callback.ts';
import { generateChecks } from './generate.ts';
import { limitChecks } from './limits.ts';
import { matchChecks } from './matches.ts';
import { payloadChecks } from './payload.ts';
import { orderChecks, paymentChecks, paymentLimits } from './payments.ts';
import { pushChecks } from './push.ts';
import { retryChecks } from './retries.ts';
import { screenChecks } from './screens.ts';
import { guessChecks, tokenChecks, tokenEndCheck } from './token.ts';

/** Every check of a service, in the order in which they run. */
export const SERVICE_CHECKS: readonly ServiceCheck[] = [
  ...tokenChecks,
  ...generateChecks,
  ...answerChecks,
  ...payloadChecks,
  ...pushChecks,
  ...boxChecks,
  ...screenChecks,
  ...paymentChecks,
  ...orderChecks,
  ...matchChecks,
  ...callbackChecks,
  ...retryChecks,
  ...amountChecks,
  ...errorChecks,
  ...limitChecks,
  ...paymentLimits,
  ...codeChecks,
  leakCheck,
  tokenEndCheck,
  ...guessChecks,
  ...everyCallbackChecks,
];

/** Clauses that no check of a service judges. */
export const SERVICE_NOT_JUDGED: readonly NotJudged[] = [
  { clauses: ['ERR-5'], why: 'the contents of a log' },
  { clauses: ['ERR-8'], why: 'the same answers over two databases: a service has one, and may hold every character' },
  { clauses: ['LEN'], why: 'what a service may take beyond the letter: the specification leaves it open' },
  { clauses: ['CHK', 'CAN'], why: 'calls that the specification lacks' },
  { clauses: ['GEN-8'], why: 'help for the developer of a partner, which only our own gateway gives' },
  {
    clauses: ['GEN-9', 'GEN-10', 'CBK-8', 'SYN-10', 'SYN-11'],
    why: 'other forms of contents and callbacks, which a gateway has by its configuration',
  },
  { clauses: ['LIM-6'], why: 'limits against floods and slow requests: a judge sends none' },
  { clauses: ['LIM-10'], why: 'how often the till of a gateway sells: no call of a partner' },
  { clauses: ['LIM-8', 'LIM-9'], why: 'what a service believes of proxies in front of it: its configuration decides' },
  { clauses: ['QRP-6'], why: 'what an encoder refuses to write' },
  { clauses: ['QRP-8'], why: 'QRs of wallets that the owner of an account names: its configuration decides' },
  { clauses: ['ERR-9', 'SYN-12'], why: 'bodies that are compressed or not UTF-8: the specification names none' },
  {
    clauses: ['ERR-10', 'SND-10', 'CBK-9', 'SYN-13'],
    why: 'help for developers, and choices in gaps: another service may choose otherwise',
  },
  { clauses: ['SYN-5'], why: 'what a service stores of its attempts' },
  { clauses: ['SYN-7'], why: 'addresses to which a service sends no callbacks: its configuration decides' },
  { clauses: ['SYN-9'], why: 'how a service resolves the host names of its partners' },
  {
    clauses: ['MSG', 'TOP', 'PRE', 'SHA', 'SIG', 'BOX-HTTP'],
    why: 'messages between gateway and box, which the specification leaves to the service: SND and CBK judge the result',
  },
  {
    clauses: ['ENR', 'FLT', 'STO', 'BAK', 'SEL', 'MOD', 'REG', 'ROL'],
    why: 'what only our own gateway does, for its admin',
  },
  { clauses: ['TLS'], why: 'TLS in front of the service is set up by its admin; every request checks its certificate' },
  { clauses: ['SRC', 'CRE', 'MAT', 'PQR', 'LIM-7'], why: 'how a gateway hears of money that another service reports' },
  { clauses: ['AGT'], why: 'what a box does: paybox judge box judges one' },
  DIALECT_NOT_JUDGED,
  THREATS_NOT_JUDGED,
];
