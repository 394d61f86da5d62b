import { Writable } from 'node:stream';
import { parseAgentConfig } from '../../src/device/agent/config.ts';
import { LightAgent, lightSetupOf } from '../../src/device/agent/light-agent.ts';
import { transportNamed } from '../../src/device/agent/transports/registry.ts';
import { systemClock, withDeadline } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/log.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { newSecret } from '../../src/protocol/secret.ts';

/** Boxes that register at the same time. */
const AT_ONCE = 64;
const REGISTER_TIMEOUT_MS = 60_000;

export interface LightIdentity {
  terminalCode: string;
  serialNumber: string;
  secret: string;
}

/** Identities of boxes, numbered from `first` on. */
export function identitiesOf(count: number, first = 1): LightIdentity[] {
  return Array.from({ length: count }, (_, index) => {
    const number = String(first + index).padStart(5, '0');
    return { terminalCode: `VVB0${number}`, serialNumber: `VVB9${number}`, secret: newSecret(systemRandom) };
  });
}

/** Light boxes of this process, of which `start` switches on so many more, and settles once they are registered. */
export async function lightFleet(
  identities: readonly LightIdentity[],
  { transport: name, url }: { transport: string; url: string },
) {
  const transport = transportNamed('--transport', name);
  const opener = await transport.openLight?.(systemClock);
  if (opener === undefined) throw new Error('no light boxes');
  const log = createLogger(new Writable({ write: (_line, _encoding, done) => done() }), systemClock, 'json');
  const link = { transport: name, url };
  const agents: LightAgent[] = [];
  const startOne = async (box: LightIdentity) => {
    const setup = lightSetupOf(parseAgentConfig({ box, link, dataDir: '.' }, 'benchmark'), transport, opener);
    const agent = new LightAgent(setup, { clock: systemClock, random: systemRandom, log, onScene: () => undefined });
    agents.push(agent);
    const done = await withDeadline(systemClock, REGISTER_TIMEOUT_MS, registered(agent));
    if (done === undefined) throw new Error(`${box.terminalCode} is not registered: ${agent.reason}`);
  };
  return {
    start: async (more: number) => {
      const waiting = identities.slice(agents.length, agents.length + more).values();
      const startSome = async () => {
        for (const box of waiting) await startOne(box);
      };
      await Promise.all(Array.from({ length: AT_ONCE }, startSome));
    },
    online: () => agents.filter((agent) => agent.isOnline).length,
    close: async () => {
      await Promise.all(agents.map((agent) => agent.close()));
      opener.close();
    },
  };
}

function registered(agent: LightAgent): Promise<true> {
  return new Promise((resolve) => agent.onConnection(() => resolve(true)));
}

/** Posts JSON; returns the answer, whatever its status. */
export async function post(url: string, body: object, authorization: string): Promise<Record<string, unknown>> {
  const headers = { 'content-type': 'application/json', authorization };
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  return (await answer.json()) as Record<string, unknown>;
}
