import { World } from '../kill/world.ts';
import { Database } from './database.ts';

/** Rows of these tables are so few to a page that each payment takes room on a disk. */
const MONEY_TABLES = ['payments', 'callbacks', 'notices', 'credits'];
const IN_TABLESPACE = ['payments', 'callbacks'];

/** A gateway and a box as programs, a partner and sources, and the gateway's database with its standby. */
export interface ChaosWorld {
  database: Database;
  world: World;
  close(): Promise<void>;
}

export async function openChaosWorld(): Promise<ChaosWorld> {
  const database = await Database.open();
  let world: World | undefined;
  try {
    const kind = {
      name: 'PostgreSQL with a standby',
      link: 'embedded',
      sources: 'keyed',
      qrLifetimeSeconds: 300,
    } as const;
    const opened = await World.open(kind, database.url);
    world = opened;
    for (const table of MONEY_TABLES) await database.run(`alter table ${table} set (fillfactor = 10)`);
    for (const table of IN_TABLESPACE) await database.run(`alter table ${table} set tablespace small`);
    return {
      database,
      world: opened,
      close: async () => {
        await opened.close();
        await database.close();
      },
    };
  } catch (error) {
    await world?.close();
    await database.close();
    throw error;
  }
}
