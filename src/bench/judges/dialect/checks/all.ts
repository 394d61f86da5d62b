import { type NotJudged, THREATS_NOT_JUDGED } from '../../suite.ts';
import type { DialectCheck } from '../dialect-check.ts';
import { CONNECTION_CHECKS, ENROLMENT_CHECKS, UNLINKED_CHECKS, VIOLATION_CHECKS } from './enrolment.ts';
import { NOTICE_CHECKS } from './notices.ts';

/**
 * Every check of a box of the public dialect, in the order in which they run. Its levels: `spec` where the public service
 * and public firmware agree, `gap` where a clause is this project's own.
 */
export const DIALECT_CHECKS: readonly DialectCheck[] = [
  ...UNLINKED_CHECKS,
  ...ENROLMENT_CHECKS,
  ...NOTICE_CHECKS,
  ...CONNECTION_CHECKS,
  ...VIOLATION_CHECKS,
];

/** Clauses that no check of such a box judges. */
export const DIALECT_BOX_NOT_JUDGED: readonly NotJudged[] = [
  {
    clauses: ['VQD-3', 'VQD-5', 'VQD-6', 'VQD-7', 'VQD-8'],
    why: 'what a service does with boxes and hosts of the dialect',
  },
  { clauses: ['DIA-10'], why: 'how this judge weighs the other clauses' },
  { clauses: ['DIA-9'], why: 'what the dialect cannot prevent, and where a box keeps its secrets' },
  {
    clauses: [
      'ERR',
      'LEN',
      'TOK',
      'GEN',
      'SUM',
      'SND',
      'CBK',
      'CHK',
      'CAN',
      'SYN',
      'SRC',
      'CRE',
      'MAT',
      'PQR',
      'LIM',
      'STO',
      'BAK',
      'FLT',
      'SEL',
      'MOD',
      'REG',
      'ROL',
    ],
    why: 'what a service and its gateway do: paybox judge service judges one',
  },
  {
    clauses: ['MSG', 'TOP', 'PRE', 'SHA', 'SIG', 'ENR', 'BOX-HTTP', 'AGT', 'QRP'],
    why: "what a box of this project's own messages does: paybox judge box judges one",
  },
  { clauses: ['TLS'], why: 'most firmware of the dialect speaks without TLS' },
  THREATS_NOT_JUDGED,
];
