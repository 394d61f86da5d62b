import { isDeepStrictEqual } from 'node:util';
import type { BoxIdentity } from '../../src/device/agent/contract.ts';
import { configuredSecret } from '../../src/device/agent/enrolment/secret.ts';
import { Link } from '../../src/device/agent/link/link.ts';
import { Loop, type LoopHearer } from '../../src/device/agent/loop.ts';
import { qrCheckOf, screenEvent } from '../../src/device/agent/screen/outcome.ts';
import { Screen } from '../../src/device/agent/screen/screen.ts';
import { restore } from '../../src/device/box/restore.ts';
import { type BoxEvent, type BoxState, shownPushId } from '../../src/device/box/state.ts';
import { view } from '../../src/device/box/view.ts';
import type { Scene } from '../../src/device/scene.ts';
import { withDeadline } from '../../src/lib/clock.ts';
import { signingKeyOf } from '../../src/protocol/keys.ts';
import { BoxDisk } from './box-disk.ts';
import { type Calendar, Run } from './machine.ts';
import { Panel, panelRenderer } from './panel.ts';
import { traceLog } from './quiet-log.ts';
import type { World } from './world.ts';

const FIRST_DISPLAY_WAIT_MS = 5_000;

/** One device: its disk, its glass, its calendar, and the agent on it, which may end at any moment. */
export class BoxMachine {
  readonly name: string;
  readonly identity: BoxIdentity;
  readonly calendar: Calendar = { offsetMs: 0 };
  readonly disk: BoxDisk;
  readonly panel: Panel;
  /** Whether it was started since somebody last cared. */
  wasOn = false;
  /** Number of the boot of the machine. */
  #boot = 1;
  /** When its power went; its clock stands still until it comes back. */
  #offSinceMs: number | undefined;
  readonly #world: World;
  #run: Run | undefined;
  #loop: Loop | undefined;

  constructor(world: World, name: string, identity: BoxIdentity) {
    this.#world = world;
    this.name = name;
    this.identity = identity;
    this.disk = new BoxDisk(world.hooksOf(this), (entries) => world.oracle.forgets(entries));
    this.panel = new Panel(world.chance, (scene) => world.oracle.sees(this, scene));
  }

  get isOn(): boolean {
    return this.#run?.alive === true;
  }

  /** The mind of the running agent. */
  get state(): BoxState | undefined {
    return this.isOn ? this.#loop?.state : undefined;
  }

  press(key: 'dismiss' | 'history' | 'repeat'): void {
    if (this.isOn) this.#loop?.dispatch({ type: 'key', key });
  }

  /** Starts as `startAgent` does, without pages, voice and buttons. */
  start(): void {
    if (this.isOn) return;
    this.wasOn = true;
    this.#world.oracle.starts(this);
    const { oracle, network, chance, clock: time, trace } = this.#world;
    const { terminalCode, serialNumber } = this.identity;
    if (this.#offSinceMs !== undefined) this.calendar.offsetMs -= time.monotonicMs() - this.#offSinceMs;
    this.#offSinceMs = undefined;
    const run = new Run(time, this.calendar);
    this.#run = run;
    const log = traceLog(this.name, (...words) => run.alive && trace(...words));
    const journal = this.disk.journalFor(run);
    let shown: Scene | undefined;
    const config = {
      terminalCode,
      serialNumber,
      version: '0',
      paidHoldMs: 10_000,
      endedHoldMs: 5_000,
      plainLink: false,
      sandboxMark: true,
      boot: { id: `boot ${this.#boot}`, offsetMs: time.monotonicMs() },
    };
    const at = { monotonicMs: run.monotonicMs(), wallMs: run.wallMs() };
    const remembered = { entries: journal.load(), intact: journal.status().complete };
    const loop = new Loop(restore(config, remembered, at, false), { clock: run, log, journal });
    const dispatch = (event: BoxEvent) => {
      if (!run.alive) return;
      oracle.happens(this, event);
      loop.dispatch(event);
    };
    const screen = new Screen(
      { driver: 'simulated', open: (io) => this.panel.open(run, io) },
      {
        clock: run,
        log,
        io: { clock: run, log, terminal: undefined, terminalInput: undefined, openSerial: noSerial, cacheDir: '' },
        openRenderer: panelRenderer,
        onOutcome: (outcome) => dispatch(screenEvent(outcome)),
      },
    );
    const link = new Link({
      clock: run,
      random: chance,
      log,
      identity: this.identity,
      secret: configuredSecret(this.identity.secret),
      key: signingKeyOf(Buffer.alloc(32).toString('base64url')),
      agentVersion: '0',
      display: 'simulated',
      open: (io, signal) => {
        oracle.opens(this, io.sessionId);
        return network.open(io, run, signal);
      },
      checkQr: (qrCode) => qrCheckOf(screen, qrCode),
      shownPushId: () => shownPushId(loop.state),
      emit: dispatch,
    });
    const hearer: LoopHearer = {
      show: (state) => {
        if (!run.alive) return;
        oracle.holds(this, state);
        const scene = view(state);
        if (isDeepStrictEqual(scene, shown)) return;
        shown = scene;
        screen.present(scene);
      },
      send: (sends) => {
        if (run.alive) link.send(sends);
      },
      announce: (payments) => {
        if (run.alive) for (const payment of payments) oracle.hears(this, payment);
      },
    };
    loop.hear(hearer);
    this.#loop = loop;
    void loop.run();
    void withDeadline(run, FIRST_DISPLAY_WAIT_MS, screen.start()).then(() => {
      if (run.alive) link.start();
    });
  }

  /** The power goes, and with it the time, because no battery keeps the clock. */
  cutPower(): void {
    if (!this.isOn) return;
    this.kill();
    this.#boot += 1;
    this.#offSinceMs = this.#world.clock.monotonicMs();
  }

  /** The program is killed at this very instant; the glass goes dark with it. */
  kill(): void {
    if (this.#run?.alive !== true) return;
    const run = this.#run;
    run.kill();
    this.panel.powerOff();
    this.#world.network.cut({ owner: run });
  }
}

async function noSerial(): Promise<never> {
  throw new Error('a simulated display has no serial port');
}
