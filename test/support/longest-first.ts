import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Durations in seconds of the slowest files, for a machine without own measurements; names without `test/` and `.test.ts`. */
export const SECONDS: Readonly<Record<string, number>> = {
  'cluster/cluster.long': 180,
  'bench/faults-library.long': 98,
  'conformance/box.long': 75,
  'cluster/brokers.long': 59,
  'commands/fleet.long': 57,
  'kill/mosquitto.long': 49,
  'cluster/sources.long': 48,
  'e2e/links.long': 47,
  'conformance/box-mutants.long': 44,
  'e2e/standby.long': 42,
  'e2e/shutdown.long': 41,
  'store/failover.long': 40,
  'simulation/twin.long': 39,
  'display/drivers.contract.long': 38,
  'bench/faults-at.long': 37,
  'security/http-scan.long': 37,
  'bench/command.long': 36,
  'security/hostile-broker.long': 34,
  'cluster/console.long': 32,
  'cluster/backup.long': 32,
  'conformance/box-state-mutants.long': 30,
  'security/deaf-session.long': 30,
  'bench/library.long': 28,
  'kill/embedded': 28,
  'security/mqtt-attacker.long': 28,
  'fuzz/services.long': 26,
  'gateway/external-broker.long': 26,
  'cluster/failover': 25,
  'gateway/faults-half-open.long': 24,
  'display/scan.long': 23,
  'gateway/faults-each.long': 23,
  'conformance/service.long': 22,
  'e2e/enrolment.long': 22,
  'fuzz/devices.long': 22,
  'gateway/faults-routes': 21,
  'cluster/clocks': 20,
  'bench/serve-command.long': 19,
  'conformance/box-independent.long': 19,
  'gateway/enrolment-crowd.long': 19,
  'gateway/pages.long': 19,
  'bench/panels/panels.long': 17,
  'bench/steps.long': 17,
  'conformance/service-mutants.long': 17,
  'bench/faults.long': 16,
  'commands/interrupts.long': 16,
  'display/io/baud.long': 16,
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
