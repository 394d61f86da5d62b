import { access } from 'node:fs/promises';
import { basename } from 'node:path';
import { type AgentConfig, agentConfigSchema, loadAgentConfig } from '../../device/agent/config.ts';
import type { LocalHttpOptions } from '../../device/agent/pages/server.ts';
import { deviceSerial, readSetupReport, type SetupReport } from '../../device/agent/setup/machine.ts';
import { type SetupNeed, showSetup } from '../../device/agent/setup/setup-screen.ts';
import { notifyServiceManager } from '../../device/agent/systemd.ts';
import type { AgentWorld } from '../../device/agent/world.ts';
import { BOX_FILE, readConfigFile } from '../../lib/config-file.ts';
import { ConfigError, systemCodeOf } from '../../lib/errors.ts';
import type { ServiceManager } from '../../lib/systemd.ts';
import { version } from '../../lib/version.ts';

const POLL_MS = 2_000;
/** How long a box with a valid configuration shows that a newer file was refused. */
const NOTICE_MS = 10_000;

export interface WaitingOptions {
  config: string;
  /** The report of `paybox first-boot`. */
  setupReport: string | undefined;
  cacheDir: string;
  /** The folder that holds `sys`, `dev`, `proc` and `etc`. */
  root: string;
}

/**
 * Returns a valid configuration as soon as there is one. Until then, and for a moment if a newer one was refused, the
 * machine's displays show the problem. Undefined once `signal` aborts.
 */
export async function configured(
  options: WaitingOptions,
  deps: AgentWorld,
  manager: ServiceManager | undefined,
  signal: AbortSignal,
): Promise<AgentConfig | undefined> {
  const { setupReport, config: file } = options;
  let shown = '';
  let screen: ShownScreen | undefined;
  const say = async (need: SetupNeed) => {
    if (JSON.stringify(need) === shown) return;
    shown = JSON.stringify(need);
    await screen?.close();
    screen = await show(need, options, deps, manager);
  };
  try {
    while (!signal.aborted) {
      const report = setupReport === undefined ? undefined : await readSetupReport(setupReport, deps.log);
      const outcome = await loadAgentConfig(file).catch((error: unknown) => {
        if (error instanceof ConfigError) return error;
        throw error;
      });
      if (!(outcome instanceof ConfigError)) {
        if (shown === '' && typeof report?.problem === 'string') {
          await say({ ...FIX_FILE, problem: report.problem, ...codesOf(outcome) });
          await deps.clock.sleep(NOTICE_MS, signal);
        }
        return signal.aborted ? undefined : outcome;
      }
      await say(await needOf(outcome, options, report));
      await deps.clock.sleep(POLL_MS, signal);
    }
    return undefined;
  } finally {
    await screen?.close();
  }
}

const FIX_FILE = { action: `Sửa ${BOX_FILE} trên thẻ nhớ rồi bật lại máy` };
const FIX_CONFIG = { action: 'Sửa tệp cấu hình; máy tự chạy khi tệp đúng' };
const WRITE_FILE = {
  action: `Ghi ${BOX_FILE} vào phân vùng boot của thẻ nhớ: terminalCode, serialNumber, gateway. Bật lại máy, rồi nhập mã kích hoạt hiện trên màn hình`,
};

async function needOf(
  error: ConfigError,
  options: WaitingOptions,
  report: SetupReport | undefined,
): Promise<SetupNeed> {
  const codes = { terminalCode: null, serialNumber: (await deviceSerial(options.root)) ?? null };
  if (typeof report?.problem === 'string') return { ...FIX_FILE, problem: report.problem, ...codes };
  const isMissing = await access(options.config).then(
    () => false,
    (reason: unknown) => systemCodeOf(reason) === 'ENOENT',
  );
  if (!isMissing) return { ...FIX_CONFIG, problem: error.message, ...codes };
  if (report === undefined) return { ...FIX_CONFIG, problem: `Chưa có ${basename(options.config)}`, ...codes };
  return { ...WRITE_FILE, problem: `Chưa có ${BOX_FILE}`, ...codes };
}

function codesOf({ box: { terminalCode, serialNumber } }: AgentConfig) {
  return { terminalCode, serialNumber };
}

interface ShownScreen {
  close(): Promise<void>;
}

async function show(
  need: SetupNeed,
  { config, cacheDir, root }: WaitingOptions,
  deps: AgentWorld,
  manager: ServiceManager | undefined,
): Promise<ShownScreen> {
  const http = await pagesOf(config);
  const screen = await showSetup(need, { version: version(), http, cacheDir, root }, deps);
  const ended = new AbortController();
  // A waiting agent has no loop that could be stuck.
  const watched = { box: screen.box, ping: () => Promise.resolve() };
  if (manager !== undefined) void notifyServiceManager(manager, watched, deps.clock, ended.signal);
  return {
    close: () => {
      ended.abort();
      return screen.close();
    },
  };
}

/** Returns the address of the box's pages, as far as it can be read from the configuration. */
async function pagesOf(config: string): Promise<LocalHttpOptions> {
  const { http } = agentConfigSchema.shape;
  const { value } = await readConfigFile(config).catch(() => ({ value: undefined }));
  const given = typeof value === 'object' && value !== null && 'http' in value ? http.safeParse(value.http) : undefined;
  return given?.success ? given.data : http.parse({});
}
