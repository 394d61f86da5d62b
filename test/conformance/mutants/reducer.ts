import type { BoxNeed } from '../../../src/bench/judges/box/subject.ts';
import type { At, BoxEvent, BoxState, Step } from '../../../src/device/box/state.ts';

export type Reduce = (before: BoxState, event: BoxEvent, at: At) => Step;

/** How a box decides otherwise than ours, which is given. */
export type ReducerChange = (ours: Reduce) => Reduce;

export interface StateMutant {
  breaks: readonly string[];
  change: ReducerChange;
  /** What it takes to see it, of a restart and of what takes long. */
  needs?: readonly BoxNeed[];
}

/** Changes what comes out of each event of a type. */
export function after(
  type: BoxEvent['type'],
  change: (step: Step, event: BoxEvent, before: BoxState) => Step,
): ReducerChange {
  return (ours) => (before, event, at) => {
    const step = ours(before, event, at);
    return event.type === type ? change(step, event, before) : step;
  };
}

/** Changes what has the screen, at each event that puts something else there. */
export function onStage(change: (stage: BoxState['stage']) => BoxState['stage']): ReducerChange {
  return (ours) => (before, event, at) => {
    const step = ours(before, event, at);
    const { stage } = step.state;
    return stage.kind === before.stage.kind ? step : { ...step, state: { ...step.state, stage: change(stage) } };
  };
}

export function activeId({ stage }: BoxState): string | undefined {
  if (stage.kind === 'order') return stage.active.order.pushId;
  return stage.kind === 'paid' ? stage.resume?.order.pushId : undefined;
}

/** Whether the box has not been in a session since it started. */
export function isNew({ firstWelcomeMs }: BoxState): boolean {
  return firstWelcomeMs === undefined;
}

export function quiet({ stage }: BoxState): BoxState['stage'] {
  return stage.kind === 'paid' && stage.resume === undefined ? { kind: 'idle' } : stage;
}
