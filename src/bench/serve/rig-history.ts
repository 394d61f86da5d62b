import { Transcript } from '../engine/reports/transcript.ts';
import { contextOf, recordChanges } from '../engine/run/run.ts';
import { TrafficRecorder } from '../engine/run/traffic-recorder.ts';
import type { StepContext } from '../engine/steps/context.ts';
import type { Target } from '../engine/target.ts';
import type { Scenario } from '../scenarios/scenario.ts';

interface HistoryOptions {
  scenario: Scenario;
  target: Target;
  seed: number;
}

/** The steps, changes and failures since the rig was opened or reset. */
export interface RigHistory {
  readonly transcript: Transcript;
  readonly messages: TrafficRecorder;
  readonly context: StepContext;
  /** Ends the recording of changes. */
  readonly over: AbortController;
  steps: number;
  readonly failures: { reason: string; where: string }[];
}

/** Begins a new history of a rig. It ends when the signal or its `over` aborts. */
export function beginHistory({ scenario, target, seed }: HistoryOptions, signal: AbortSignal): RigHistory {
  const transcript = new Transcript(target.time.clock);
  const messages = new TrafficRecorder(target, transcript);
  const over = new AbortController();
  recordChanges(target, transcript, AbortSignal.any([signal, over.signal]));
  const options = { seed, updateGoldens: false, signal, onStep: () => undefined };
  const context = contextOf(scenario, messages.target(), transcript, options);
  return { transcript, messages, context, over, steps: 0, failures: [] };
}
