import { type AgentConfig, loadAgentConfig } from '../agent/config.ts';
import { JOURNAL_FILE } from '../agent/journal.ts';
import { systemClock } from '../lib/clock.ts';
import type { Finding } from './findings.ts';
import { agentFindings, journalFinding, runningAgent, secretOf } from './findings-agent.ts';
import { displayFindings, serialFindings } from './findings-display.ts';
import { linkFindings } from './findings-link.ts';
import { clockFinding, networkFinding, portFinding, storageFinding } from './findings-machine.ts';
import { partFindings } from './findings-parts.ts';
import { systemFindings, thisMachine } from './findings-system.ts';
import { table } from './print.ts';

/** `paybox doctor`: exit code 1 when a check failed, 2 when the configuration cannot be read. */
export async function doctor(options: { config: string; json?: boolean }): Promise<void> {
  const findings = await findingsOf(await loadAgentConfig(options.config));
  if (options.json === true) process.stdout.write(`${JSON.stringify(findings)}\n`);
  else process.stdout.write(`${report(findings)}\n`);
  if (findings.some((finding) => finding.result === 'failed')) process.exitCode = 1;
}

async function findingsOf(config: AgentConfig): Promise<Finding[]> {
  const agent = await runningAgent(config);
  const { secret, finding } = await secretOf(config);
  // What an agent has open it cannot share: a serial port, a screen that two would draw on, a journal that it writes.
  const own =
    agent === undefined
      ? [await journalFinding(config, JOURNAL_FILE), ...(await displayFindings(config)), await portFinding(config.http)]
      : await agentFindings(agent, config);
  return [
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

function report(findings: readonly Finding[]): string {
  const rows = findings.map(({ check, result, found, fix }) => [
    result,
    check,
    fix === '' ? found : `${found} → ${fix}`,
  ]);
  return table(rows);
}
