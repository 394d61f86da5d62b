import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Durations in seconds of the slowest files, for a machine without own measurements; names without `test/` and `.test.ts`. */
export const SECONDS: Readonly<Record<string, number>> = {
  'bench/faults-library': 119,
  'e2e/links': 65,
  'conformance/box-mutants': 60,
  'kill/mosquitto': 60,
  'commands/fleet': 58,
  'bench/command': 57,
  'gateway/faults-each': 55,
  'simulation/twin': 49,
  'conformance/service-mutants': 45,
  'conformance/box': 45,
  'conformance/service': 45,
  'e2e/standby': 41,
  'e2e/bad-network': 40,
  'fuzz/services': 40,
  'bench/library': 38,
  'security/hostile-broker': 38,
  'e2e/shutdown': 30,
  'security/deaf-session': 30,
  'kill/embedded': 35,
  'store/restore': 32,
  'security/http-scan': 31,
  'gateway/faults-routes': 31,
  'fuzz/devices': 22,
  'kill/http': 25,
  'gateway/faults-half-open': 25,
  'security/mqtt-attacker': 24,
  'display/drivers.contract': 24,
  'display/scan': 20,
};
/** Assumed for files that are not listed and have no measurement. */
const SECONDS_OF_OTHERS = 1;

const nameOf = (file: string) => file.replace(/^test\//, '').replace(/\.test\.ts$/, '');

/** Starts the slowest files first, so that no worker ends long after the others. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const secondsOf = (file: TestSpecification) => {
      const declared = SECONDS[nameOf(relative(this.ctx.config.root, file.moduleId))] ?? SECONDS_OF_OTHERS;
      const last = this.ctx.cache.getTestSpecificationResult(file);
      return last === undefined || last.failed ? declared : last.duration / 1000;
    };
    const seconds = new Map(files.map((file) => [file, secondsOf(file)]));
    return files.toSorted((a, b) => (seconds.get(b) ?? 0) - (seconds.get(a) ?? 0));
  }
}
