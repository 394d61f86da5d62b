import type { BoxCheck } from '../check-context.ts';
import { ANNOUNCEMENT_CHECKS } from './announcements.ts';
import { HTTP_CHECKS, MQTT_CHECKS, TLS_CHECKS, VIOLATION_CHECKS } from './connections.ts';
import { FAULT_CHECKS } from './faults.ts';
import { PAYMENT_CHECKS, PAYMENT_LIMIT_CHECK } from './payments.ts';
import { PUSH_CHECKS, PUSH_LIMIT_CHECKS } from './pushes.ts';
import { REJECTION_CHECKS } from './rejections.ts';
import { REPORT_CHECKS } from './reports.ts';
import { RETURN_CHECK, SESSION_CHECKS, SUPERSEDED_CHECK } from './sessions.ts';
import { SIGNING_CHECKS } from './signing.ts';

/** Every check of a box, in the order in which they run. */
export const BOX_CHECKS: readonly BoxCheck[] = [
  RETURN_CHECK,
  ...PUSH_CHECKS,
  ...REJECTION_CHECKS,
  ...PAYMENT_CHECKS,
  ...ANNOUNCEMENT_CHECKS,
  ...FAULT_CHECKS,
  PAYMENT_LIMIT_CHECK,
  ...PUSH_LIMIT_CHECKS,
  ...REPORT_CHECKS,
  ...SIGNING_CHECKS,
  ...SESSION_CHECKS,
  ...TLS_CHECKS,
  ...MQTT_CHECKS,
  ...HTTP_CHECKS,
  ...VIOLATION_CHECKS,
  SUPERSEDED_CHECK,
];
