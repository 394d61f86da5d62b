import type { Gateway } from '../../gateway/gateway.ts';
import type { Clock } from '../../lib/clock.ts';
import { type PayboxError, reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';

/** The wait after a start that failed. It doubles up to the longest one. */
const WAIT_MS = { first: 500, longest: 5_000 };

interface RestartDeps {
  clock: Clock;
  log: Logger;
  start(): Promise<Gateway>;
  /** Called when the gateway serves nobody until its next start. */
  away(reason: string): Promise<void>;
  /** Called after each start but the first. */
  ready(gateway: Gateway): Promise<void>;
}

/**
 * Starts a gateway again in this process whenever others have taken over its work, as after the machine was frozen. So
 * it comes back without a supervisor. The next start has a run of its own, and shares nothing with the one before.
 */
export class RestartingGateway {
  readonly #deps: RestartDeps;
  readonly #ending = new AbortController();
  #current: Gateway | undefined;
  #restarting: Promise<void> = Promise.resolve();

  constructor(first: Gateway, deps: RestartDeps) {
    this.#deps = deps;
    this.#follow(first);
  }

  /** Closes the gateway. Waits for a start that has begun. */
  async close(withinMs: number): Promise<void> {
    this.#ending.abort();
    await this.#restarting;
    await this.#current?.close(withinMs);
  }

  #follow(gateway: Gateway): void {
    this.#current = gateway;
    void gateway.superseded?.then((error) => {
      if (!this.#ending.signal.aborted) this.#restarting = this.#restart(gateway, error);
    });
  }

  async #restart(superseded: Gateway, { code, message }: PayboxError): Promise<void> {
    const { clock, log, start, away, ready } = this.#deps;
    const { signal } = this.#ending;
    log.error('gateway-superseded', { code, reason: message });
    this.#current = undefined;
    const problems = (reason: unknown) => log.warn('restart-failed', { reason: reasonOf(reason) });
    await away(message).catch(problems);
    await superseded.close().catch(problems);
    for (let waitMs = WAIT_MS.first; !signal.aborted; waitMs = Math.min(waitMs * 2, WAIT_MS.longest)) {
      try {
        const next = await start();
        this.#follow(next);
        await ready(next).catch(problems);
        return;
      } catch (error) {
        log.warn('restart-failed', { reason: reasonOf(error), againInMs: waitMs });
        await clock.sleep(waitMs, signal);
      }
    }
  }
}
