import { type AgentConfig, loadAgentConfig } from '../agent/config.ts';
import type { Finding } from './findings.ts';
import { displayFindings, serialFindings } from './findings-display.ts';
import { clockFinding, gatewayFinding, networkFinding, portFinding, storageFinding } from './findings-machine.ts';
import { partFindings } from './findings-parts.ts';
import { table } from './print.ts';

/** `paybox doctor`: exit code 1 when a check failed, 2 when the configuration cannot be read. */
export async function doctor(options: { config: string; json?: boolean }): Promise<void> {
  const findings = await findingsOf(await loadAgentConfig(options.config));
  if (options.json === true) process.stdout.write(`${JSON.stringify(findings)}\n`);
  else process.stdout.write(`${report(findings)}\n`);
  if (findings.some((finding) => finding.result === 'failed')) process.exitCode = 1;
}

async function findingsOf(config: AgentConfig): Promise<Finding[]> {
  return [
    clockFinding(),
    await storageFinding(config.dataDir),
    ...(await displayFindings(config)),
    ...(await serialFindings(config)),
    ...(await partFindings(config)),
    await portFinding(config.http),
    networkFinding(),
    await gatewayFinding(config.link.url),
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
