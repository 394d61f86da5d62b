import { DIALECT_NOT_JUDGED, type NotJudged, THREATS_NOT_JUDGED } from '../../suite.ts';
import type { BoxCheck } from '../box-check.ts';
import { ANNOUNCEMENT_CHECKS } from './announcements.ts';
import { HTTP_CHECKS, MQTT_CHECKS, TLS_CHECKS, VIOLATION_CHECKS } from './connections.ts';
import { FAULT_CHECKS } from './faults.ts';
import { FORGERY_CHECKS } from './forgeries.ts';
import { PAYMENT_CHECKS, PAYMENT_LIMIT_CHECK } from './payments.ts';
import { PUSH_CHECKS, PUSH_LIMIT_CHECKS } from './pushes.ts';
import { REAL_MONEY_CHECKS } from './real-money.ts';
import { REJECTION_CHECKS } from './rejections.ts';
import { REPORT_CHECKS } from './reports.ts';
import { SCREEN_CHECKS } from './screens.ts';
import { RETURN_CHECK, SESSION_CHECKS, SUPERSEDED_CHECK } from './sessions.ts';
import { SIGNING_CHECKS } from './signing.ts';

/** Every check of a box, in the order in which they run. */
export const BOX_CHECKS: readonly BoxCheck[] = [
  RETURN_CHECK,
  ...PUSH_CHECKS,
  ...REJECTION_CHECKS,
  ...PAYMENT_CHECKS,
  ...ANNOUNCEMENT_CHECKS,
  ...REAL_MONEY_CHECKS,
  ...SCREEN_CHECKS,
  ...FAULT_CHECKS,
  PAYMENT_LIMIT_CHECK,
  ...PUSH_LIMIT_CHECKS,
  ...REPORT_CHECKS,
  ...SIGNING_CHECKS,
  ...FORGERY_CHECKS,
  ...SESSION_CHECKS,
  ...TLS_CHECKS,
  ...MQTT_CHECKS,
  ...HTTP_CHECKS,
  ...VIOLATION_CHECKS,
  SUPERSEDED_CHECK,
];

/** Clauses that no check of a box judges. */
export const BOX_NOT_JUDGED: readonly NotJudged[] = [
  {
    clauses: ['ERR', 'LEN', 'TOK', 'GEN', 'SUM', 'SND', 'CBK', 'CHK', 'CAN', 'SYN', 'SRC', 'CRE', 'MAT', 'PQR'],
    why: 'what a service answers its partners: paybox judge service judges one',
  },
  {
    clauses: ['MSG-13', 'MSG-14'],
    why: 'what a gateway says of itself, and which payments are late; AGT-14 and AGT-15 judge what a box does with it',
  },
  {
    clauses: ['AGT-16'],
    why: 'a gateway that goes live, or another account: what a box forgets then needs the key of its list',
  },
  { clauses: ['AGT-17'], why: 'the key that repeats a payment: the judge presses no key' },
  { clauses: ['LIM-7'], why: 'how deep JSON may be: no message of a gateway that says the truth is so deep' },
  { clauses: ['LIM-6'], why: 'limits of its pages against floods and slow requests: a judge sends none' },
  { clauses: ['LIM-10'], why: 'how often the till of a gateway sells: no message to a box' },
  { clauses: ['LIM-8', 'LIM-9'], why: 'proxies in front of a gateway: the judge needs none' },
  { clauses: ['QRP-8'], why: 'QRs of wallets that the owner of an account names: the judge has a bank account' },
  { clauses: ['QRP-6'], why: 'what an encoder refuses to write: a box writes no QR' },
  { clauses: ['SHA'], why: 'gateways that share boxes: the judge is one gateway alone, in lane 0' },
  { clauses: ['BOX-HTTP-5'], why: 'when a gateway asks a box for its login: a box sends it with each request' },
  { clauses: ['TOP-5'], why: 'what a broker does with a box that reads nothing' },
  { clauses: ['PRE-3', 'PRE-5'], why: 'what a gateway does with the presence of a box, and with a broker' },
  { clauses: ['PRE-4'], why: 'a broker that retains nothing, or what is over: that of the judge retains what is true' },
  {
    clauses: ['PRE-6'],
    why: 'many boxes that come back at one time: the judge has one or two, and asks for no spread',
  },
  { clauses: ['ENR'], why: 'enrolment: the judged box has a secret already' },
  {
    clauses: ['TLS-3', 'TLS-4', 'TLS-5', 'STO', 'BAK', 'SEL', 'MOD', 'REG', 'ROL'],
    why: 'what a broker or a gateway does',
  },
  {
    clauses: ['FLT'],
    why: 'fault injection on a test bench; the checks of AGT-2, AGT-5 and AGT-10 use FLT-10',
  },
  DIALECT_NOT_JUDGED,
  THREATS_NOT_JUDGED,
];
