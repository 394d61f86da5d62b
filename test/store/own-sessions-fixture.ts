import { PROGRAMS, without } from '../support/programs.ts';

export const { missing, note } = without(PROGRAMS.postgres);
export const LOCKS = `from pg_locks where locktype = 'advisory'
  and database = (select oid from pg_database where datname = current_database())`;
