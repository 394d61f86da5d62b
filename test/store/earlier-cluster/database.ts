import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PostgresServer } from '../../support/postgres.ts';

export const SHARDS = 3;
const FOLDER = import.meta.dirname;

/** Makes a database as the last version with shards has left it. Returns its address. */
export async function earlierCluster(server: PostgresServer): Promise<string> {
  const databaseUrl = await server.database();
  const [shard = '', cluster = '', rows = ''] = ['shard.sql', 'cluster.sql', 'rows.sql'].map((name) =>
    readFileSync(join(FOLDER, name), 'utf8'),
  );
  const schemas = Array.from({ length: SHARDS }, (_, i) => {
    const made = shard.replaceAll('shard_0', `shard_${i}`);
    // The functions name each other without a schema.
    return `set search_path = shard_${i};\n${made}`;
  });
  const inOwn = rows.split('\n').flatMap((line) => {
    const index = /^INSERT INTO shard_(\d)\./.exec(line)?.[1];
    return index === undefined ? [line] : [`set search_path = shard_${index}; ${line}`];
  });
  await server.run(databaseUrl, [cluster, ...schemas, ...inOwn].join('\n'));
  return databaseUrl;
}
