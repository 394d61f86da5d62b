import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Durations in seconds of the slowest files, for a machine without own measurements; names without `test/` and `.test.ts`. */
export const SECONDS: Readonly<Record<string, number>> = {
  'cluster/cluster': 180,
  'bench/faults-library': 98,
  'conformance/box': 75,
  'cluster/brokers': 59,
  'commands/fleet': 57,
  'kill/mosquitto': 49,
  'cluster/sources': 48,
  'e2e/links': 47,
  'conformance/box-mutants': 44,
  'e2e/standby': 42,
  'e2e/shutdown': 41,
  'store/failover': 40,
  'simulation/twin': 39,
  'display/drivers.contract': 38,
  'bench/faults-at': 37,
  'security/http-scan': 37,
  'bench/command': 36,
  'security/hostile-broker': 34,
  'cluster/console': 32,
  'cluster/backup': 32,
  'conformance/box-state-mutants': 30,
  'security/deaf-session': 30,
  'bench/library': 28,
  'kill/embedded': 28,
  'security/mqtt-attacker': 28,
  'fuzz/services': 26,
  'gateway/external-broker': 26,
  'cluster/failover': 25,
  'gateway/faults-half-open': 24,
  'display/scan': 23,
  'gateway/faults-each': 23,
  'conformance/service': 22,
  'e2e/enrolment': 22,
  'fuzz/devices': 22,
  'gateway/faults-routes': 21,
  'cluster/clocks': 20,
  'bench/serve-command': 19,
  'conformance/box-independent': 19,
  'gateway/enrolment-crowd': 19,
  'gateway/pages': 19,
  'bench/panels/panels': 17,
  'bench/steps': 17,
  'conformance/service-mutants': 17,
  'bench/faults': 16,
  'commands/interrupts': 16,
  'display/io/baud': 16,
};
/** Assumed for files that are not listed and have no measurement. */
const SECONDS_OF_OTHERS = 1;
/** Files that take less stay with their project, whose files share a worker. */
const LONG_SECONDS = 15;

const nameOf = (file: string) => file.replace(/^test\//, '').replace(/\.test\.ts$/, '');

/** Starts the slowest files first, so that no worker ends long after the others. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const secondsOf = (file: TestSpecification) => {
      const path = relative(this.ctx.config.root, file.moduleId);
      const declared = SECONDS[nameOf(path)] ?? SECONDS_OF_OTHERS;
      const last = this.ctx.cache.getFileTestResults(`${file.project.name}:${path}`);
      return last === undefined || last.failed ? declared : last.duration / 1000;
    };
    const rows = files.map((file) => ({ file, seconds: secondsOf(file) }));
    const long = rows.filter(({ seconds }) => seconds >= LONG_SECONDS);
    const byProject = Map.groupBy(
      rows.filter((row) => !long.includes(row)),
      ({ file }) => file.project,
    );
    return [long, ...byProject.values()].flatMap((group) =>
      group.toSorted((a, b) => b.seconds - a.seconds).map(({ file }) => file),
    );
  }
}
