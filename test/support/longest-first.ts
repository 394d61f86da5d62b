import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Durations in seconds of the slowest files, for a machine without own measurements; names without `test/` and `.test.ts`. */
export const SECONDS: Readonly<Record<string, number>> = {
  'cluster/conformance.long': 99,
  'gateway/unstorable.long': 97,
  'cluster/kills.long': 80,
  'commands/fleet.long': 78,
  'display/scan.long': 72,
  'simulation/twin.long': 71,
  'conformance/box-mutants.long': 70,
  'conformance/box-state-mutants.long': 69,
  'cluster/readiness.long': 66,
  'e2e/links.long': 59,
  'fuzz/services.long': 55,
  'commands/admin.long': 54,
  'cluster/brokers.long': 50,
  'e2e/standby.long': 50,
  'doctor/link.long': 48,
  'conformance/box.long': 48,
  'bench/faults-library.long': 48,
  'testing/library.long': 47,
  'cluster/sources.long': 47,
  'conformance/service-mutants.long': 46,
  'kill/mosquitto.long': 45,
  'cluster/strangers.long': 43,
  'security/http-scan.long': 43,
  'bench/command.long': 43,
  'cluster/relinked.long': 41,
  'conformance/box': 31,
  'doctor/doctor': 30,
  'kill/embedded': 26,
  'gateway/partners': 26,
  'display/layout/layout': 25,
  'gateway/faults-routes': 24,
  'commands/usage': 23,
  'simulation/simulation': 21,
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
