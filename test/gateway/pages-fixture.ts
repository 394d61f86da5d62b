import { PROGRAMS, without } from '../support/programs.ts';

export const { missing, note } = without(PROGRAMS.chromium);
