import { PayboxError } from '../../../lib/errors.ts';
import type { Journal } from '../contract.ts';
import type { BoxFaults } from './box-faults.ts';

const REASON = 'the disk is full by the fault disk-full';

/** Returns a journal that cannot be written while the fault disk-full is active. Reading still works. */
export function faultyJournal(journal: Journal, faults: BoxFaults): Journal {
  let isRefused = false;
  return {
    load: () => journal.load(),
    append: async (entries) => {
      isRefused = faults.happens('disk-full') !== undefined;
      if (isRefused) {
        throw new PayboxError('STORAGE_FAULT', `the journal cannot be written: ${REASON}`, {
          severity: 'retryable',
          fix: 'wait for the end of the fault, or end it with DELETE /_mock/faults',
        });
      }
      await journal.append(entries);
    },
    reopen: () => journal.reopen(),
    status: () => (isRefused ? { ...journal.status(), ok: false, reason: REASON } : journal.status()),
    close: () => journal.close(),
  };
}
