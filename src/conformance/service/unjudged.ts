import { type NotJudged, THREATS } from '../unjudged.ts';

/** Clauses that no check of a service judges. */
export const SERVICE_NOT_JUDGED: readonly NotJudged[] = [
  { clauses: ['ERR-5'], why: 'what a log says' },
  {
    clauses: ['LIM-6'],
    why: 'how a service defends itself against too many and too slow requests, which a judge does not send',
  },
  { clauses: ['QRP-6'], why: 'what an encoder refuses to write' },
  { clauses: ['SYN-5'], why: 'what a service keeps of its attempts' },
  { clauses: ['SYN-7'], why: 'where a service would not send callbacks, which is asked in its configuration' },
  { clauses: ['SYN-9'], why: 'how a service finds the hosts of its partners' },
  {
    clauses: ['MSG', 'TOP', 'PRE', 'SIG', 'BOX-HTTP'],
    why: 'how a gateway of ours speaks to its boxes, which the specification leaves to the service: what comes of it is judged by SND and CBK',
  },
  { clauses: ['ENR', 'FLT', 'STO', 'BAK'], why: 'what our own gateway does for its owner' },
  { clauses: ['TLS'], why: 'how the operator set up what is before the service; fetch checks its certificate' },
  { clauses: ['AGT'], why: 'what a box does: judge one with --await-box' },
  THREATS,
];
