import { z } from 'zod';
import { MissingPeerError, PayboxError, reasonOf } from '../../lib/errors.ts';
import { StepFailure } from '../engine/steps/context.ts';
import type { Step } from '../scenarios/steps.ts';
import type { Rig } from './rig.ts';
import { Rigs } from './rigs.ts';
import { Refusal, type ServerDeps } from './route.ts';
import { LIMITS } from './schemas.ts';

/** A request of the program that started this one. The user of the body checks it. */
const channelRequest = z.strictObject({
  id: z.int(),
  ask: z.enum(['open', 'step', 'screen', 'text', 'status', 'callbacks', 'report', 'reset', 'close']),
  rig: z.string().optional(),
  box: z.int().min(1).default(1),
  body: z.unknown().optional(),
});
const numbered = z.looseObject({ id: z.int() });
type ChannelRequest = z.output<typeof channelRequest>;

const OPENS_MAX = 3;
/** Gateway and box report in these words that their port is taken. */
const TAKEN = /\bport \d+\b.*\bis (?:already )?in use\b/;

/** The answer to the request with the same id. `failed` is a step whose result is not as expected. */
export type ChannelAnswer = { id: number } & (
  | { result: unknown }
  | { refused: { message: string; fix: string } }
  | { failed: { message: string; expected?: string | undefined; actual?: string | undefined; screen?: string } }
);

/** Opens and drives rigs for one program, over a channel of messages instead of HTTP. */
export class ChannelServer {
  readonly #rigs: Rigs;
  readonly #ending = new AbortController();

  constructor(deps: ServerDeps) {
    this.#rigs = new Rigs(deps, LIMITS.rigsOfOwner);
  }

  /** Returns the answer to a message; undefined for a message that is no request. Never throws. */
  async answer(message: unknown): Promise<ChannelAnswer | undefined> {
    const { success, data: request } = channelRequest.safeParse(message);
    if (!success) {
      // Without an answer the caller would wait forever.
      const { data: asked } = numbered.safeParse(message);
      return asked && { id: asked.id, refused: { message: 'the program does not know this request', fix: '' } };
    }
    try {
      return { id: request.id, result: (await this.#handle(request)) ?? null };
    } catch (error) {
      if (error instanceof StepFailure) return { id: request.id, failed: await this.#failure(error, request) };
      return { id: request.id, refused: refusalOf(error) };
    }
  }

  /** Ends all rigs; resolves when all their parts have ended. */
  close(reason: string): Promise<void> {
    this.#ending.abort(new Error(reason));
    return this.#rigs.close(reason);
  }

  async #handle({ ask, rig: id = '', box, body }: ChannelRequest): Promise<unknown> {
    if (ask === 'open') return (await this.#open(body)).view();
    if (ask === 'close') return this.#rigs.end(id, 'it was closed');
    const rig = this.#rigs.get(id);
    return rig.use(() => this.#look(rig, ask, String(box), body));
  }

  /**
   * Opens a rig on free ports. Another program may take a port between the moment when it was found free and its use.
   */
  async #open(body: unknown): Promise<Rig> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#rigs.open(body, this.#ending.signal);
      } catch (error) {
        if (tries >= OPENS_MAX || !TAKEN.test(reasonOf(error))) throw error;
      }
    }
  }

  async #look(rig: Rig, ask: Exclude<ChannelRequest['ask'], 'open' | 'close'>, box: string, body: unknown) {
    switch (ask) {
      case 'step':
        return rig.step(body, this.#ending.signal);
      case 'screen':
        return pictureOf(rig, box);
      case 'text':
        return rig.inRealTime(() => rig.box(box).text());
      case 'status':
        return rig.inRealTime(() => rig.box(box).status());
      case 'callbacks':
        return rig.inRealTime(() => rig.callbacks());
      case 'report':
        return rig.report();
      case 'reset':
        await rig.reset();
        return rig.view();
    }
  }

  /** Returns a failed step with both sides, and the screen of its box at that moment. */
  async #failure({ message, expected, actual }: StepFailure, { rig: id = '', body }: ChannelRequest) {
    const { box = 1 } = body as Step;
    const failed = { message, expected, actual };
    try {
      const rig = this.#rigs.get(id);
      return { ...failed, screen: await pictureOf(rig, String(box)) };
    } catch {
      // A box that is off has no screen to send, and the failure matters more.
      return failed;
    }
  }
}

/** Returns the screen of a box in base64, because messages are text. */
async function pictureOf(rig: Rig, box: string): Promise<string> {
  const picture = await rig.inRealTime(() => rig.picture(box));
  if (picture === undefined) throw new Refusal(503, 'nothing is on the screen yet', 'ask again');
  return Buffer.from(picture).toString('base64');
}

function refusalOf(error: unknown): { message: string; fix: string } {
  if (error instanceof MissingPeerError) {
    return { message: error.message, fix: 'it is off, by a fault or because it has ended' };
  }
  const fix = error instanceof Refusal || error instanceof PayboxError ? error.fix : '';
  return { message: error instanceof Error ? error.message : reasonOf(error), fix };
}
