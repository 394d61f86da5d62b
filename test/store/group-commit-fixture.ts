import { PROGRAMS, without } from '../support/programs.ts';

export const { missing, note } = without(PROGRAMS.postgres);
export const WRITER = `select pid from pg_locks where locktype = 'advisory' and granted
  and database = (select oid from pg_database where datname = current_database())`;
export const SECOND = `select pid from pg_stat_activity where datname = current_database() and application_name = 'paybox-gateway'
  and pid not in (select pid from pg_locks where locktype = 'advisory')`;
