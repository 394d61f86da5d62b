import type { Entry } from '../../src/device/box/entry.ts';
import { reduce } from '../../src/device/box/reduce.ts';
import { initialState, restore } from '../../src/device/box/restore.ts';
import type { At, BoxEvent, BoxState, Step } from '../../src/device/box/state.ts';
import { connecting, drawn, push, registered } from './events.ts';
import { at, CONFIG } from './samples.ts';

/** Events that play one after another, a millisecond apart unless a time is named. */
export function play(start: BoxState, events: readonly (BoxEvent | [number, BoxEvent])[]): Step {
  const all: Omit<Step, 'state' | 'wakeAtMs'> = { writes: [], sends: [], announcements: [], repeats: [] };
  let step: Step = { state: start, ...all, wakeAtMs: undefined };
  for (const item of events) {
    const [time, event] = Array.isArray(item) ? item : [step.state.nowMs + 1, item];
    step = reduce(step.state, event, at(time));
    all.writes.push(...step.writes);
    all.sends.push(...step.sends);
    all.announcements.push(...step.announcements);
    all.repeats.push(...step.repeats);
  }
  return { ...step, ...all };
}

export const fresh = () => initialState(CONFIG, at(0));
/** A registered box that is idle. */
export const ready = () => play(fresh(), [connecting, registered]).state;

/** A registered box with push 1 confirmed on its screen. */
export const showing = () => play(fresh(), [connecting, registered, push(1), drawn(1)]).state;

/** The box after a restart whose journal could be read whole. Its calendar clock is right by a time server. */
export const revived = (entries: readonly Entry[], when: At) => restore(CONFIG, { entries, intact: true }, when, true);
