import { type NotJudged, THREATS } from '../unjudged.ts';

/** Clauses that no check of a box judges. */
export const BOX_NOT_JUDGED: readonly NotJudged[] = [
  {
    clauses: ['ERR', 'TOK', 'GEN', 'SUM', 'SND', 'CBK', 'SYN'],
    why: 'what a service says to its partners: judge one with --service',
  },
  {
    clauses: ['LIM-6'],
    why: 'how a box defends its pages against too many and too slow requests, which a judge does not send',
  },
  { clauses: ['QRP-6'], why: 'what an encoder refuses to write: a box writes no QR' },
  { clauses: ['TOP-5'], why: 'what a broker does with a box that reads nothing' },
  { clauses: ['PRE-3'], why: 'what a gateway makes of the presence of a box' },
  { clauses: ['ENR'], why: 'a box that is judged has a secret already, and so does not enrol' },
  { clauses: ['TLS-3', 'TLS-4', 'TLS-5', 'STO', 'BAK'], why: 'what a broker or a gateway does' },
  {
    clauses: ['FLT'],
    why: 'what can be ordered to go wrong on a test bench: FLT-10 brings about what AGT-2, AGT-5 and AGT-10 are judged by',
  },
  THREATS,
];
