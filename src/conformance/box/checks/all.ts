import type { Check } from '../../check.ts';
import type { BoxNeed, BoxSubject } from '../subject.ts';
import { HTTP_CHECKS, MQTT_CHECKS, WATCHED_CHECKS } from './connections.ts';
import { FAULT_CHECKS } from './faults.ts';
import { LIMIT_CHECKS } from './limits.ts';
import { PAYMENT_CHECKS } from './payments.ts';
import { PUSH_CHECKS } from './pushes.ts';
import { REFUSAL_CHECKS } from './refusals.ts';
import { REPEAT_CHECKS } from './repeats.ts';
import { REPORT_CHECKS } from './reports.ts';
import { NOTICE_CHECKS } from './screens.ts';
import { RETURN_CHECK, SESSION_CHECKS, SUPERSEDED_CHECK } from './sessions.ts';
import { SEAL_CHECKS } from './signing.ts';
import { TLS_CHECKS } from './tls.ts';

/** Every check of a box, in the order in which they are run. */
export const BOX_CHECKS: readonly Check<BoxSubject, BoxNeed>[] = [
  RETURN_CHECK,
  ...PUSH_CHECKS,
  ...REPEAT_CHECKS,
  ...REFUSAL_CHECKS,
  ...PAYMENT_CHECKS,
  ...NOTICE_CHECKS,
  ...FAULT_CHECKS,
  ...LIMIT_CHECKS,
  ...REPORT_CHECKS,
  ...SEAL_CHECKS,
  ...SESSION_CHECKS,
  ...TLS_CHECKS,
  ...MQTT_CHECKS,
  ...HTTP_CHECKS,
  ...WATCHED_CHECKS,
  SUPERSEDED_CHECK,
];
