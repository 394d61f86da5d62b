import { reasonOf } from '../../lib/errors.ts';
import { CODES } from '../../protocol/codes.ts';
import type { Directory, KnownBox } from '../common/directory.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import type { Hub } from './hub.ts';

/** By this time a box whose gateway received the news has said hello again. */
const NEWS_MS = 5_000;
/** Further changes do not delay the check for longer than this many waits. */
const WAITS_MAX = 6;
/** How many boxes are looked up at once. */
const BOXES_MAX = 500;

/** Ends the session of a box and its connections. */
type Expel = (terminalCode: string, reason: string, disabled?: boolean) => Promise<void>;

/**
 * Compares the sessions of this gateway with the registry after a change. The gateway that changes the registry sends
 * news of the box. But that gateway may end before it has sent them, and a changed file sends no news of boxes.
 */
export class SessionCheck {
  readonly #world: World;
  readonly #directory: Directory;
  readonly #hub: Hub;
  readonly #expel: Expel;
  readonly #over = new AbortController();
  #isAsked = false;
  #running: Promise<void> | undefined;

  constructor(world: World, { directory }: Stored, hub: Hub, expel: Expel) {
    this.#world = world;
    this.#directory = directory;
    this.#hub = hub;
    this.#expel = expel;
  }

  /** Schedules a check for the time when the news of this change have arrived. */
  soon(): void {
    this.#isAsked = true;
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  async close(): Promise<void> {
    this.#over.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#world;
    for (let waits = 0; this.#isAsked && waits < WAITS_MAX; waits += 1) {
      this.#isAsked = false;
      await clock.sleep(NEWS_MS, this.#over.signal);
    }
    if (this.#over.signal.aborted) return;
    this.#isAsked = false;
    await this.#check().catch((error: unknown) => log.warn('sessions-not-checked', { reason: reasonOf(error) }));
    if (this.#isAsked) await this.#run();
  }

  async #check(): Promise<void> {
    const codes = [...this.#hub.sessions.keys()];
    for (let at = 0; at < codes.length; at += BOXES_MAX) {
      const asked = codes.slice(at, at + BOXES_MAX);
      const boxes = new Map((await this.#directory.boxesNamed(asked)).map((it) => [it.terminalCode, it]));
      for (const code of asked) {
        if (this.#over.signal.aborted) return;
        await this.#compare(code, boxes.get(code));
      }
    }
  }

  async #compare(terminalCode: string, box: KnownBox | undefined): Promise<void> {
    const session = this.#hub.sessions.get(terminalCode);
    if (session === undefined) return;
    if (box?.serialNumber !== session.held.serialNumber) return this.#expel(terminalCode, CODES.NOT_REGISTERED);
    if (box.disabled) return this.#expel(terminalCode, CODES.BOX_DISABLED, true);
    const account = await this.#directory.accountOf(box);
    const isLinked = session.link?.bankAccount === account?.bankAccount;
    const isNamed =
      session.link?.userBankName === account?.userBankName && session.link?.bankCode === account?.bankCode;
    if (!isLinked) await this.#hub.ends.renew(terminalCode, 'the box was linked anew');
    else if (!isNamed) await this.#hub.ends.renew(terminalCode, 'the account of the box was changed');
  }
}
