import { PROGRAMS, without } from '../support/programs.ts';

export const { missing, note } = without(PROGRAMS.postgres);
export const at = (databaseUrl: string, port: number) =>
  Object.assign(new URL(databaseUrl), { port: String(port) }).href;
