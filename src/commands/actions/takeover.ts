import { loadGatewayConfig } from '../../gateway/config/config.ts';
import { ConfigError } from '../../lib/errors.ts';
import { say } from '../shared/output.ts';

/** Runs `paybox takeover`: moves the shards of an earlier version into one set of tables. */
export async function takeover({
  config: file,
  check = false,
  drop = false,
}: {
  config: string;
  check?: boolean;
  drop?: boolean;
}): Promise<void> {
  const { dataDir, databaseUrl } = await loadGatewayConfig(file);
  if (databaseUrl === undefined) {
    throw new ConfigError(`${file} names no databaseUrl`, 'name the database of the cluster in it');
  }
  const { takeOver } = await import('../../gateway/store/takeover/takeover.ts');
  const { shards, rows } = await takeOver({ dataDir, databaseUrl }, { check, drop });
  const { orders = 0, payments = 0, callbacks = 0, boxes = 0 } = rows;
  const what = `${shards} shards: ${boxes} boxes, ${orders} orders, ${payments} payments, ${callbacks} callbacks`;
  const where = new URL(databaseUrl).pathname.slice(1);
  if (check) say(`${where} can be taken over, with ${what}; nothing was changed`);
  else say(`took over ${what} of ${where}; start the gateways, with cluster: in their files`);
}
