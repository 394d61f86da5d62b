import { z } from 'zod';
import { boxCode } from '../../protocol/fields.ts';
import { newSecret } from '../../protocol/secret.ts';
import { accept, type Refusal, type Result, refuse } from '../common/result.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import { ROLE_NAMES } from '../config/roles.ts';
import type { Admin } from '../registry/changes.ts';
import { ADMIN_TOKENS_MAX } from '../store/repositories/admin-tokens.ts';
import type { AdminTokenRow, NewAudit } from '../store/schema/tables.ts';
import { digestOf, TOKEN_PREFIX } from './authorizer.ts';

/** A cashier's token can be restricted to at most this many boxes. */
const BOXES_MAX = 50;
/** The audit list uses these names for callers without a stored token. So no token may have one, in any case. */
const RESERVED: readonly string[] = ['config', 'admin-token', 'loopback', 'file'];

/** Two names must differ in more than upper and lower case, so that people can tell apart who did what. */
const TAKEN = {
  'name taken': 'no other token has, in whatever case',
  'name spent': 'no token has had: one was revoked, and the audit list would not tell the two apart',
};

/** The name of a token, as the audit list shows it. */
const tokenName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'expected 1 to 64 letters, digits and . _ -, as till-1')
  .refine((it) => !RESERVED.includes(it.toLowerCase()), `expected another name than ${RESERVED.join(', ')}`);

/** The body of the request for a new token. */
export const newAdminToken = z
  .strictObject({
    name: tokenName,
    role: z.enum(ROLE_NAMES),
    boxes: z
      .array(boxCode)
      .min(1)
      .max(BOXES_MAX)
      .optional()
      .describe('of a cashier: the boxes at which he may sell; left out: all'),
  })
  .refine((it) => it.boxes === undefined || it.role === 'cashier', {
    path: ['boxes'],
    error: 'expected none with this role: only a cashier is restricted to boxes',
  });

/** Makes and revokes tokens of the gateway's own routes (PROTOCOL.md, clause ROL). A refused change changes nothing. */
export class AdminTokens {
  readonly #world: World;
  readonly #stored: Stored;

  constructor(world: World, stored: Stored) {
    this.#world = world;
    this.#stored = stored;
  }

  /** Returns the new token, which nobody can read later: the store has its digest only. */
  async add(by: Admin, { name, role, boxes }: z.output<typeof newAdminToken>): Promise<Result<string>> {
    const { store } = this.#stored;
    const { clock, random } = this.#world;
    const codes = boxes && [...new Set(boxes)].toSorted();
    const problem = codes && (await this.#unknownBox(codes));
    if (problem !== undefined) return problem;
    const token = `${TOKEN_PREFIX}${newSecret(random)}`;
    const row: AdminTokenRow = {
      id: random.uuid(),
      name,
      digest: digestOf(token),
      role,
      boxes: codes === undefined ? null : JSON.stringify(codes),
      created_at_ms: clock.wallMs(),
      created_by: by.who,
      last_used_at_ms: null,
      revoked_at_ms: null,
    };
    const added = await store.adminTokens.add(row, this.#noteOf(by, 'added', name, { role, boxes: codes }));
    if (added === 'too many') {
      return refuse('E46', `expected fewer than ${ADMIN_TOKENS_MAX} tokens: revoke those that nobody uses`);
    }
    if (added !== 'added') return refuse('NAME_TAKEN', `${name}: expected a name that ${TAKEN[added]}`);
    this.#tell(by, 'added', name);
    return accept(token);
  }

  /** Revokes a token. The gateway refuses it at once, and ends its open streams and downloads. */
  async revoke(by: Admin, name: string): Promise<Result<undefined>> {
    const { store } = this.#stored;
    const { clock } = this.#world;
    if (!(await store.adminTokens.revoke(name, clock.wallMs(), this.#noteOf(by, 'revoked', name, {})))) {
      return refuse('E96', `expected the name of a token that is not revoked, not ${name}`);
    }
    this.#tell(by, 'revoked', name);
    return accept(undefined);
  }

  /** Lists the tokens that are in use, or those that are revoked. */
  list(isRevoked: boolean): Promise<AdminTokenRow[]> {
    return this.#stored.store.adminTokens.list(isRevoked);
  }

  async #unknownBox(codes: readonly string[]): Promise<Refusal | undefined> {
    const known = new Set((await this.#stored.directory.boxesNamed(codes)).map((it) => it.terminalCode));
    const unknown = codes.find((it) => !known.has(it));
    return unknown === undefined ? undefined : refuse('E46', `boxes: expected one in the registry, not ${unknown}`);
  }

  /** Publishes the change: every part of every gateway checks again which tokens have open streams. */
  #tell({ who, address }: Admin, what: string, name: string): void {
    this.#world.log.info('registry-changed', { who, address, what, target: targetOf(name) });
    this.#stored.directory.changed();
    this.#world.changes.publish('registry');
  }

  #noteOf({ who, address }: Admin, what: string, name: string, detail: object): NewAudit {
    const at_ms = this.#world.clock.wallMs();
    return { at_ms, who, address, what, target: targetOf(name), detail: JSON.stringify(detail) };
  }
}

function targetOf(name: string): string {
  return `tokens/${name}`;
}
