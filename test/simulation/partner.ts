import type { Run } from './machine.ts';
import type { World } from './world.ts';

/** How a partner treats a callback. */
export type Manner = 'processes' | 'fails' | 'hangs' | 'is away';

interface Answer {
  status: number;
  body: string;
  cut: boolean;
}

const PROCESSED = JSON.stringify({
  error: false,
  errorReason: '000',
  toastMessage: '',
  object: { reftransactionid: 'ref' },
});

/** The partner's end of the callbacks: it keeps every body that reached it. */
export class Partner {
  readonly #world: World;
  manner: () => Manner = () => 'processes';

  constructor(world: World) {
    this.#world = world;
  }

  /** What the dispatcher of one run of the gateway posts with. */
  postFor(run: Run) {
    return async (
      _url: string,
      _headers: Record<string, string>,
      body: string,
      signal: AbortSignal,
    ): Promise<Answer> => {
      if (!run.alive) return new Promise(() => undefined);
      const { chance, oracle } = this.#world;
      const manner = this.manner();
      await run.sleep(chance.timeMs(0.5, 30), signal);
      if (signal.aborted) throw signal.reason;
      if (manner === 'is away') throw new Error('connect ECONNREFUSED');
      oracle.called(body);
      if (manner === 'hangs') await new Promise((resolve) => signal.addEventListener('abort', resolve));
      else await run.sleep(chance.timeMs(0.5, 30), signal);
      if (signal.aborted) throw signal.reason;
      return manner === 'fails' ? { status: 500, body: '', cut: false } : { status: 200, body: PROCESSED, cut: false };
    };
  }
}
