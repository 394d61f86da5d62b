import { loadAgentConfig } from '../../device/agent/config.ts';
import { readSetupReport } from '../../device/agent/setup/machine.ts';
import { findingsOf } from '../../device/doctor/doctor.ts';
import type { Finding } from '../../device/doctor/findings.ts';
import { gatewayFindings } from '../../device/doctor/gateway.ts';
import { readRootToken } from '../../gateway/access/root-token.ts';
import { loadGatewayConfig } from '../../gateway/config/config.ts';
import { hookPathOf } from '../../gateway/money/sources/registry.ts';
import { ConfigError } from '../../lib/errors.ts';
import { stderrLog } from '../../lib/log.ts';
import { table } from '../../lib/text.ts';
import { say } from '../shared/output.ts';

/** Runs `paybox doctor`. The exit code is 1 if a check failed, 2 if the configuration cannot be read. */
export async function doctor(options: DoctorOptions): Promise<void> {
  const findings = await findingsFor(options);
  if (options.json === true) say(JSON.stringify(findings));
  else say(report(findings));
  if (findings.some((finding) => finding.result === 'failed')) process.exitCode = 1;
}

interface DoctorOptions {
  config?: string;
  gateway?: string;
  setupReport: string;
  json?: boolean;
}

async function findingsFor({ config, gateway, setupReport }: DoctorOptions): Promise<Finding[]> {
  if (config !== undefined && gateway === undefined) {
    const setup = await setupFindings(setupReport);
    const file = await loadAgentConfig(config).catch((error: unknown) => {
      throw withSetup(error, setup);
    });
    return [...setup, ...(await findingsOf(file))];
  }
  if (gateway !== undefined && config === undefined) {
    const { sources, ...file } = await loadGatewayConfig(gateway);
    const hooks = sources.map((it) => ({ name: it.name, hook: hookPathOf(it) }));
    return gatewayFindings({ ...file, adminToken: readRootToken(file), sources: hooks });
  }
  throw new ConfigError('expected --config with the file of an agent, or --gateway with that of a gateway');
}

/** Returns the problem that first-boot had with the file on the card. */
async function setupFindings(path: string): Promise<Finding[]> {
  const report = await readSetupReport(path, stderrLog());
  if (report === undefined) return [];
  const fix = 'correct it on the boot partition, and restart the box';
  if (report.problem !== null) return [{ check: 'set-up', result: 'failed', found: report.problem, fix }];
  return [{ check: 'set-up', result: 'ok', found: report.file, fix: '' }];
}

/**
 * Adds the mistake in the file on the card to an error. A box without a configuration may have such a file, which the
 * person must then correct.
 */
function withSetup(error: unknown, setup: readonly Finding[]): unknown {
  const failed = setup.find(({ result }) => result === 'failed');
  if (failed === undefined || !(error instanceof ConfigError)) return error;
  return new ConfigError(`${error.message}; the file on the card: ${failed.found}`, failed.fix);
}

function report(findings: readonly Finding[]): string {
  const rows = findings.map(({ check, result, found, fix }) => [
    result,
    check,
    fix === '' ? found : `${found} → ${fix}`,
  ]);
  return table(rows);
}
