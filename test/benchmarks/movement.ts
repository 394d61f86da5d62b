import { WELCOME_TIMEOUT_MS } from '../../src/device/agent/link/link.ts';
import { MEMBER_GONE_MS } from '../../src/gateway/store/engines/cluster-database.ts';
import { CLUSTER_EVENTS, ClusterModel, type ClusterSize, HELLO_MS, type Movement } from '../cluster/movement.ts';
import { type Benchmark, type Row, rowUnder } from './row.ts';

const SEED = 1;
/** A million boxes, where members have some shards each, and where they have about one. */
const LARGE: readonly ClusterSize[] = [
  { members: 300, shards: 1024, boxes: 1_000_000 },
  { members: 1_000, shards: 1024, boxes: 1_000_000 },
];
const WHOLE_SECONDS_MAX = 10;

/** How a cluster is whole again after an event, on the virtual clock: see `test/cluster/movement.ts`. */
export const movement: Benchmark = {
  name: 'movement',
  run: async (progress) => {
    const rows: Row[] = [];
    for (const size of LARGE) {
      for (const event of CLUSTER_EVENTS) {
        rows.push(...play(size, event, WHOLE_SECONDS_MAX, progress));
      }
    }
    return rows;
  },
};

function play(
  size: ClusterSize,
  event: (typeof CLUSTER_EVENTS)[number],
  wholeSecondsMax: number,
  progress: (text: string) => void,
): Row[] {
  const moved = new ClusterModel(size, SEED).play(event);
  const name = `${size.members} members, ${size.boxes} boxes: ${event}`;
  progress(`${name}: ${textOf(moved)}`);
  const detection = { name: 'a member is gone', value: MEMBER_GONE_MS / 1_000 };
  const answered = Math.floor(WELCOME_TIMEOUT_MS / HELLO_MS);
  return [
    rowUnder(`${name}, whole again`, 's', moved.wholeMs / 1_000, detection, wholeSecondsMax),
    rowUnder(
      'most hellos in a second at a member',
      '',
      moved.memberPeak,
      { name: 'answered in time', value: answered },
      answered,
    ),
  ];
}

function textOf({ opened, hellos, unanswered, heldMs, awayMsMax, clusterPeak }: Movement): string {
  const times = `all held after ${Math.round(heldMs)} ms, none away for more than ${Math.round(awayMsMax)} ms`;
  const said = `${hellos} hellos, ${unanswered} unanswered, at most ${clusterPeak} a second`;
  return `${opened} shards opened, ${times}; ${said}`;
}
