import { setImmediate as nextTurn } from 'node:timers/promises';
import type { BoxView } from '../../protocol/mock-api.ts';
import type { Hub } from '../boxes/hub.ts';
import type { Box, BoxPage, Directory } from '../common/directory.ts';
import type { HeldSession } from '../common/place.ts';
import { time } from './view-time.ts';

/** One turn of the event loop reads this many boxes. All of them at once would stop everything else. */
const BOXES_AT_ONCE = 250;

/** Returns boxes as an admin sees them, in the order of their codes. */
export async function boxViews(
  { limit, after }: BoxPage,
  hub: Pick<Hub, 'seen'>,
  directory: Directory,
): Promise<BoxView[]> {
  const views: BoxView[] = [];
  for (let last = after; ; ) {
    const rows = await directory.boxes({ limit: BOXES_AT_ONCE, after: last });
    const boxes = rows.slice(0, limit - views.length);
    const seen = await hub.seen(boxes.map((it) => it.terminalCode));
    for (const box of boxes) views.push(await boxView(box, seen.get(box.terminalCode), directory));
    last = rows.at(-1)?.terminalCode;
    if (rows.length < BOXES_AT_ONCE || views.length >= limit) return views;
    await nextTurn();
  }
}

/** Returns a box as an admin sees it, with its session, wherever that is. */
export async function boxView(box: Box, session: HeldSession | undefined, directory: Directory): Promise<BoxView> {
  return {
    terminalCode: box.terminalCode,
    serialNumber: box.serialNumber,
    account: await directory.accountOf(box),
    dialect: box.dialect,
    /** If false, the box confirms nothing: SUCCESS means that the QR was sent while it was connected (clause VQD-5). */
    confirms: box.dialect !== 'vietqr',
    /** A box without a secret waits for enrolment. */
    hasSecret: box.secret !== undefined,
    online: session !== undefined,
    transport: session?.transport ?? null,
    sessionId: session?.sessionId ?? null,
    since: time(session?.sinceMs ?? null),
    agentVersion: session?.agentVersion ?? null,
    display: session?.display ?? null,
  };
}
