import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Durations in seconds of the slowest files, for a machine without own measurements; names without `test/` and `.test.ts`. */
export const SECONDS: Readonly<Record<string, number>> = {
  'cluster/readiness.long': 326,
  'cluster/kills.long': 313,
  'cluster/strangers.long': 243,
  'cluster/conformance.long': 242,
  'gateway/unstorable.long': 209,
  'doctor/link.long': 174,
  'cluster/relinked.long': 166,
  'bench/dialect.long': 118,
  'bench/server-rigs.long': 114,
  'bench/mutants.long': 108,
  'cluster/tls.long': 99,
  'commands/admin.long': 97,
  'fuzz/messages.long': 90,
  'testing/library.long': 87,
  'doctor/cluster.long': 86,
  'security/compile-cache.long': 86,
  'gateway/faults-storm.long': 82,
  'bench/server-runs.long': 81,
  'security/planted-backup.long': 77,
  'commands/fleet.long': 76,
  'cluster/login-budgets.long': 76,
  'security/tls.long': 73,
  'conformance/box.long': 70,
  'conformance/service-mutants.long': 67,
  'provision/provision.long': 66,
  'security/secrets.long': 66,
  'cluster/tokens.long': 65,
  'simulation/simulation.long': 64,
  'cluster/brokers.long': 63,
  'bench/faults-library.long': 62,
  'conformance/independent-service.long': 62,
  'e2e/links.long': 59,
  'security/not-files.long': 59,
  'agent/transports/vietqr.long': 59,
  'kill/mosquitto.long': 53,
  'cluster/cluster.long': 53,
  'display/scan.long': 53,
  'conformance/service.long': 53,
  'commands/config.long': 53,
  'kill/sources.long': 52,
  'store/backup.long': 49,
  'store/damage.long': 49,
  'commands/first-boot.long': 48,
  'bench/panels/panels.long': 47,
  'conformance/box-state-mutants.long': 46,
  'fuzz/devices.long': 46,
  'bench/serve-command.long': 45,
  'e2e/standby.long': 44,
  'e2e/enrolment.long': 44,
  'kill/http.long': 44,
  'e2e/database-hangs.long': 44,
  'cluster/faults.long': 43,
  'bench/probe.long': 43,
  'cluster/sources.long': 42,
  'security/http-scan.long': 42,
  'fuzz/services.long': 42,
  'conformance/dialect.long': 42,
  'conformance/box-mutants.long': 41,
  'simulation/twin.long': 41,
  'bench/box-token.long': 41,
  'doctor/doctor': 27,
  'conformance/box': 25,
  'kill/embedded': 24,
  'simulation/simulation': 23,
  'display/layout/layout': 22,
  'cluster/failover.long': 21,
  'gateway/faults-routes': 21,
  'gateway/partners': 20,
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
