import type { BoxClient } from '../clients/box.ts';
import type { Transcript } from '../reports/transcript.ts';
import type { Target } from '../target.ts';

/**
 * The event of a change may come before the screen is drawn, and the next event after it. Later changes are only
 * clocks.
 */
const LOOKS_AFTER_CHANGE = 2;

/**
 * Returns a function that records a box's screen after each change of its status. The caller calls it for each status
 * event. Time is not skipped while it looks.
 */
export function filmOf(target: Target, transcript: Transcript, box: BoxClient): (isChange: boolean) => void {
  let left = 0;
  let isLooking = false;
  let isAsked = false;
  const look = async () => {
    isLooking = true;
    while (isAsked) {
      isAsked = false;
      // A box that is off shows nothing, which is no failure of the scenario.
      const seen = await target.time.inRealTime(() => target.probe.capture(box)).catch(() => undefined);
      if (seen !== undefined) transcript.addScreen(box.terminalCode, seen.file, seen.qr);
    }
    isLooking = false;
  };
  return (isChange) => {
    if (isChange) left = LOOKS_AFTER_CHANGE;
    if (left === 0 || transcript.hasAllPictures) return;
    left -= 1;
    isAsked = true;
    if (!isLooking) void look();
  };
}
