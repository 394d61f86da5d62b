import { table } from '../../lib/text.ts';
import { AdminClient, type AdminOptions } from '../shared/admin-client.ts';
import { say } from '../shared/output.ts';

const TOKENS = '/admin/v1/tokens';

interface Options extends AdminOptions {
  json?: boolean;
}

interface TokenView {
  name: string;
  role: string;
  boxes: string[] | null;
  createdAt: string;
  createdBy: string;
  lastUsedAt: string | null;
  revokedAt: string | null;
}

/** Runs `paybox admin tokens add`, and prints the token this one time. */
export async function addToken(name: string, options: Options & { role: string; box?: string[] }): Promise<void> {
  const { role, box, json = false } = options;
  const body = { name, role, ...(box && { boxes: box }) };
  const made = await (await AdminClient.open(options)).change<{ token: string }>('POST', TOKENS, body);
  if (json) say(JSON.stringify(made));
  else say(`${name} is added\ntoken: ${made.token}\n  shown once: keep it now, nobody can read it later`);
}

/** Runs `paybox admin tokens list`. */
export async function listTokens({ revoked = false, ...options }: Options & { revoked?: boolean }): Promise<void> {
  const tokens = await (await AdminClient.open(options)).get<TokenView[]>(`${TOKENS}?revoked=${revoked}`);
  if (options.json === true) {
    for (const it of tokens) say(JSON.stringify(it));
    return;
  }
  const heads = ['TOKEN', 'ROLE', 'BOXES', 'MADE', 'BY', 'LAST USED', ...(revoked ? ['REVOKED'] : [])];
  const rows = tokens.map(({ name, role, boxes, createdAt, createdBy, lastUsedAt, revokedAt }) => [
    ...[name, role, role === 'cashier' ? (boxes?.join(' ') ?? 'all') : '-', createdAt, createdBy, lastUsedAt ?? '-'],
    ...(revoked ? [revokedAt ?? '-'] : []),
  ]);
  say(rows.length === 0 ? `no ${revoked ? 'revoked ' : ''}tokens` : table([heads, ...rows]));
}

/** Runs `paybox admin tokens revoke`. */
export async function revokeToken(name: string, options: Options): Promise<void> {
  const client = await AdminClient.open(options);
  const done = await client.change<object>('DELETE', `${TOKENS}/${encodeURIComponent(name)}`);
  say(options.json === true ? JSON.stringify(done) : `${name} is revoked`);
}
