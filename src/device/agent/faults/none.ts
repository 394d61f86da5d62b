import { type PageBranch, plain } from '../pages/answer.ts';

/** Path for ordering faults (PROTOCOL.md, clause FLT). */
export const FAULTS_PATH = '/_mock/faults';

/** Refuses every order of a fault. */
export const noFaults: PageBranch = {
  path: FAULTS_PATH,
  answer: () => plain(404, 'this box makes no faults: set faults: true in its configuration, on a test bench only'),
};
