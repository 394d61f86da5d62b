import { type Kysely, sql } from 'kysely';
import { isPostgres } from '../integrity/checksums.ts';
import type { RegistryTable, Tables } from './tables.ts';

const REGISTERED = '"managed" text not null, "disabled" bigint not null, "changed_at_ms" bigint not null';

/** Creates the tables for partners, accounts and boxes, and for the list of their changes. */
export async function createRegistry(db: Kysely<Tables>): Promise<void> {
  const name = nameType(db);
  const tables: Record<Exclude<RegistryTable, 'sources'> | 'audit', string> = {
    partners: `"username" ${name} primary key, "password" text, "callback" text, ${REGISTERED}`,
    accounts: `"bank_account" ${name} primary key, "bank_code" text not null, "user_bank_name" text not null,
      "partner" ${name}, ${REGISTERED}`,
    boxes: `"terminal_code" ${name} primary key, "serial_number" ${name} not null, "account" ${name},
      "dialect" text not null, "mac_addr" ${name}, "confirm" text, "secret" text, ${REGISTERED}`,
    audit: `"seq" bigint primary key, "at_ms" bigint not null, "who" text not null, "what" text not null,
      "target" text not null, "detail" text not null`,
  };
  const indexes = [
    'index "accounts_of_partner" on "accounts" ("partner", "bank_account")',
    'unique index "boxes_by_serial" on "boxes" ("serial_number")',
    'unique index "boxes_by_mac" on "boxes" ("mac_addr")',
    'index "boxes_of_account" on "boxes" ("account", "terminal_code")',
    `index "boxes_of_dialect" on "boxes" ("terminal_code") where "dialect" <> 'paybox'`,
    'index "audit_of_target" on "audit" ("target", "seq")',
    ...[
      ['partners', 'username'],
      ['accounts', 'bank_account'],
      ['boxes', 'terminal_code'],
    ].map(([table, key]) => `index "${table}_of_file" on "${table}" ("${key}") where "managed" = 'file'`),
  ];
  for (const [table, columns] of Object.entries(tables)) {
    await sql.raw(`create table "${table}" (${columns})`).execute(db);
  }
  for (const index of indexes) await sql.raw(`create ${index}`).execute(db);
}

/** Adds sources of money, a content prefix for each account, and encryption of the secrets of enrolled boxes. */
export async function addSources(db: Kysely<Tables>): Promise<void> {
  const statements = [
    `create table "sources" ("name" ${nameType(db)} primary key, "kind" text not null, "options" text, ${REGISTERED})`,
    `create index "sources_of_file" on "sources" ("name") where "managed" = 'file'`,
    'alter table "accounts" add column "content_prefix" text',
    'alter table "box_secrets" add column "wrapped" bigint not null default 0',
    'create index "box_secrets_plain" on "box_secrets" ("terminal_code") where "wrapped" = 0',
    'create index "boxes_with_secret" on "boxes" ("terminal_code") where "secret" is not null',
  ];
  for (const statement of statements) await sql.raw(statement).execute(db);
}

/** Adds tokens of admins, cashiers and viewers, and records what each of them did. */
export async function addAdminTokens(db: Kysely<Tables>): Promise<void> {
  const statements = [
    `create table "admin_tokens" ("id" text primary key, "name" ${nameType(db)} not null, "digest" text not null,
      "role" text not null, "boxes" text, "created_at_ms" bigint not null, "created_by" text not null,
      "last_used_at_ms" bigint, "revoked_at_ms" bigint)`,
    'create unique index "admin_tokens_by_digest" on "admin_tokens" ("digest")',
    'create unique index "admin_tokens_by_name" on "admin_tokens" ("name") where "revoked_at_ms" is null',
    'create index "admin_tokens_revoked" on "admin_tokens" ("revoked_at_ms") where "revoked_at_ms" is not null',
    'alter table "audit" add column "address" text',
    'alter table "sales" add column "sold_by" text',
  ];
  for (const statement of statements) await sql.raw(statement).execute(db);
}

/** Adds an index that compares the names of tokens without upper and lower case. */
export async function indexTokenNames(db: Kysely<Tables>): Promise<void> {
  await sql`create index "admin_tokens_by_spelling" on "admin_tokens" (lower("name"))`.execute(db);
}

/** Adds what became of requests to enrol. Requests of earlier runs have expired. */
export async function addEnrolmentAnswers(db: Kysely<Tables>): Promise<void> {
  const statements = [
    ...[`"network" text not null default ''`, `"run" text not null default ''`, `"state" text`].map(addColumn),
    ...['until_ms', 'wrong_codes'].map((name) => addColumn(`"${name}" bigint not null default 0`)),
    'create index "enrolment_requests_of_box" on "enrolment_requests" ("terminal_code", "network", "asked_at_ms")',
    'create index "enrolment_requests_of_network" on "enrolment_requests" ("network")',
  ];
  for (const statement of statements) await sql.raw(statement).execute(db);
}

function addColumn(column: string): string {
  return `alter table "enrolment_requests" add column ${column}`;
}

/** Returns the type of a name. Both engines order names by bytes, so that a page ends where the next begins. */
function nameType(db: Kysely<Tables>): string {
  return isPostgres(db) ? 'text collate "C"' : 'text';
}
