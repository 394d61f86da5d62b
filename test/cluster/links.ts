import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { z } from 'zod';

/** What each gateway has a cable of its own to. */
export const FAR_ENDS = ['database', 'broker'] as const;
export type FarEnd = (typeof FAR_ENDS)[number];

/** A cable on loopback. */
export interface Cable {
  readonly port: number;
  /** Breaks the connections of now at both ends. */
  cut(): void;
  /** Holds back everything, also of new connections, until `resume`. */
  stall(): void;
  resume(): void;
}

/** The cables of one gateway: to the database, and to the broker. */
export type Links = Readonly<Record<FarEnd, Cable>>;

/** Lays the cables of this many gateways. The caller closes them. */
export async function startLinks(ports: { database: number; broker: number; gateways: number }) {
  const targets = Array.from({ length: ports.gateways }, () => [ports.database, ports.broker]).flat();
  const program = fork(join(import.meta.dirname, 'links-program.ts'), targets.map(String), { execArgv: [] });
  const [message] = (await once(program, 'message')) as [unknown];
  const cables = z
    .array(z.int())
    .parse(message)
    .map((port, at): Cable => {
      const tell = (what: 'cut' | 'stall' | 'resume') => () => void program.send({ at, what });
      return { port, cut: tell('cut'), stall: tell('stall'), resume: tell('resume') };
    });
  const links = Array.from({ length: ports.gateways }, (_, i): Links => {
    const [database, broker] = cables.slice(FAR_ENDS.length * i);
    if (database === undefined || broker === undefined) throw new Error('no cable');
    return { database, broker };
  });
  const close = async () => {
    const ended = once(program, 'exit');
    program.kill('SIGKILL');
    await ended;
  };
  return { links, close };
}

/** The same address at another port of this machine. */
export function atPort(url: string, port: number): string {
  return url.replace(/:\d+\//, `:${port}/`);
}
