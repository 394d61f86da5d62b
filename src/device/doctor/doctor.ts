import { systemClock } from '../../lib/clock.ts';
import type { AgentConfig } from '../agent/config.ts';
import { JOURNAL_FILE } from '../agent/journal/journal.ts';
import { ELSEWHERE_FIX, missingHere } from '../agent/platform.ts';
import { agentFindings, journalFinding, runningAgent, secretOf } from './agent.ts';
import { displayFindings, serialFindings } from './display.ts';
import type { Finding } from './findings.ts';
import { linkFindings } from './link.ts';
import { clockFinding, networkFinding, portFinding, storageFinding } from './machine.ts';
import { partFindings } from './parts.ts';
import { systemFindings, thisMachine } from './system.ts';

/** Checks a box and its machine, one check after another. */
export async function findingsOf(config: AgentConfig): Promise<Finding[]> {
  const agent = await runningAgent(config);
  const { secret, finding } = await secretOf(config);
  // A running agent owns its serial port, screen and journal, so the doctor does not test these.
  const own =
    agent === undefined
      ? [await journalFinding(config, JOURNAL_FILE), ...(await displayFindings(config)), await portFinding(config.http)]
      : await agentFindings(agent, config);
  const missing = missingHere(config);
  return [
    ...(missing === undefined
      ? []
      : [{ check: 'platform', result: 'failed' as const, found: missing, fix: ELSEWHERE_FIX }]),
    clockFinding(systemClock.wallMs()),
    ...(await systemFindings(config, thisMachine())),
    await storageFinding(config.dataDir),
    ...own,
    ...(await serialFindings(config)),
    ...(await partFindings(config)),
    networkFinding(),
    finding,
    ...(await linkFindings(config, secret)),
  ];
}
