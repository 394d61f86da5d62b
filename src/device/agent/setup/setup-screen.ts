import { reasonOf } from '../../../lib/errors.ts';
import type { Random } from '../../../lib/random.ts';
import { endAll, STOP_BUDGET_MS } from '../../../lib/shutdown.ts';
import { listFramebuffers } from '../../display/io/framebuffer.ts';
import { DISPLAY_DRIVERS } from '../../display/registry.ts';
import type { SetupScene } from '../../scene.ts';
import type { BoxApi, BoxStatus } from '../contract.ts';
import { type LocalHttpOptions, startLocalHttp } from '../pages/server.ts';
import { endsOf } from '../screen/ends.ts';
import { type ConfiguredDisplay, type DisplayWorld, displayIo, Screen } from '../screen/screen.ts';

/** The problem and what to do. */
export type SetupNeed = Omit<SetupScene, 'kind'>;

export interface SetupScreenOptions {
  version: string;
  http: LocalHttpOptions;
  /** A folder for files that can be made again, such as rendered glyphs. */
  cacheDir: string;
  /** The folder that holds `sys` and `dev`. */
  root: string;
}

type SetupDeps = DisplayWorld & { random: Random };

export interface SetupScreen {
  /** Origin of the pages; undefined if their port was not available. */
  readonly origin: string | undefined;
  readonly box: BoxApi;
  /** Clears the screen and releases the displays. It abandons each part that hangs after `withinMs`. */
  close(withinMs?: number): Promise<void>;
}

/**
 * Shows what is missing while a box has no valid configuration, until closed. It uses the box's pages and every
 * framebuffer, without a framebuffer the terminal, else the browser. It logs a failed display or port and continues.
 */
export async function showSetup(need: SetupNeed, options: SetupScreenOptions, deps: SetupDeps): Promise<SetupScreen> {
  const { clock, log } = deps;
  const scene: SetupScene = { kind: 'setup', ...need };
  log.error('setup-needed', { problem: need.problem, action: need.action });
  const listeners = new Set<() => void>();
  const onOutcome = () => {
    for (const listener of listeners) listener();
  };
  const io = { ...displayIo(deps), cacheDir: options.cacheDir };
  const displays = await defaultDisplays(options.root, deps);
  const screens = displays.map((display) => new Screen(display, { clock, log, io, onOutcome }));
  const box: BoxApi = {
    status: () => statusOf(need, options.version, screens),
    scene: () => scene,
    frame: () => screens[0]?.frame(),
    onChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    press: () => undefined,
    sound: () => undefined,
    metrics: () => '# TYPE paybox_box_online gauge\npaybox_box_online 0\n',
  };
  const { noFaults } = await import('../faults/none.ts');
  const http = await startLocalHttp(options.http, box, { ...deps, branch: noFaults }).catch((error: unknown) => {
    log.error('pages-unavailable', { reason: reasonOf(error) });
    return undefined;
  });
  for (const screen of screens) {
    screen.present(scene);
    void screen.start();
  }
  return {
    origin: http?.origin,
    box,
    close: (withinMs = STOP_BUDGET_MS) => {
      return endAll({ pages: async () => http?.close(), ...endsOf(screens, 'blank') }, withinMs, deps);
    },
  };
}

/** Returns the displays that every machine may have, best first, at least one. */
async function defaultDisplays(root: string, { terminal }: DisplayWorld): Promise<ConfiguredDisplay[]> {
  const framebuffers = await listFramebuffers(root);
  if (framebuffers.length > 0) {
    return framebuffers.map(({ device }) => configured('framebuffer', { device, root }));
  }
  return [terminal === undefined ? configured('browser', {}) : configured('terminal', {})];
}

function configured(driver: string, options: object): ConfiguredDisplay {
  const registered = DISPLAY_DRIVERS.get(driver);
  if (registered === undefined) throw new Error(`no driver ${driver}`);
  return { driver, open: registered.configure(options).open };
}

function statusOf({ problem, ...codes }: SetupNeed, version: string, screens: readonly Screen[]): BoxStatus {
  const displays = screens.map((screen) => screen.status());
  const [display] = displays;
  if (display === undefined) throw new Error('a setup screen without a display');
  return {
    terminalCode: codes.terminalCode ?? '',
    serialNumber: codes.serialNumber ?? '',
    state: 'fault',
    online: false,
    order: null,
    lastPayment: null,
    fault: { code: 'NOT_CONFIGURED', reason: problem },
    enrolment: null,
    display,
    displays,
    voice: null,
    light: null,
    buttons: null,
    journal: { ok: true, reason: null, complete: false, setAside: [], unwritten: 0 },
    link: { transport: 'none', gateway: '', plain: false, connectedAt: null, reason: 'the box is not configured' },
    version,
  };
}
