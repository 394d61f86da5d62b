import { loadAgentConfig } from '../../agent/config.ts';
import { findingsOf } from '../../doctor/doctor.ts';
import type { Finding } from '../../doctor/findings.ts';
import { table } from '../../lib/text.ts';

/** `paybox doctor`: exit code 1 if a check failed, 2 if the configuration cannot be read. */
export async function doctor(options: { config: string; json?: boolean }): Promise<void> {
  const findings = await findingsOf(await loadAgentConfig(options.config));
  if (options.json === true) process.stdout.write(`${JSON.stringify(findings)}\n`);
  else process.stdout.write(`${report(findings)}\n`);
  if (findings.some((finding) => finding.result === 'failed')) process.exitCode = 1;
}

function report(findings: readonly Finding[]): string {
  const rows = findings.map(({ check, result, found, fix }) => [
    result,
    check,
    fix === '' ? found : `${found} → ${fix}`,
  ]);
  return table(rows);
}
