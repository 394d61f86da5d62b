import { $, el, pill, stack, table } from './elements.js';

const COLUMNS = [
  ['Member', 'mono'],
  ['', ''],
  ['Shards', ''],
];

/** Reads what a member reports about its cluster, even while nobody runs a shard. Undefined at a gateway alone. */
export async function readCluster() {
  return (await (await fetch('/healthz')).json()).cluster;
}

/** Draws the members of a cluster and the shards that each runs. */
export function cluster(seen) {
  $('cluster-section').hidden = seen === undefined;
  if (seen === undefined) return [];
  const { member, members, holders, unheld } = seen;
  const shardsOf = (id) => Object.keys(holders).filter((shard) => holders[shard] === id);
  const rows = members.map(({ id, url, leaving }) => ({
    cells: [
      stack(url, id),
      leaving ? pill('leaving', 'wait') : id === member ? pill('this one', 'live') : pill('there', 'good'),
      shardsOf(id).join(', ') || '–',
    ],
  }));
  const gone = unheld.length === 0 ? '' : el('div', {}, pill(`nobody runs ${unheld.join(', ')}`, 'bad'));
  return [table(COLUMNS, rows, 'The database does not answer.'), gone].filter(Boolean);
}

export const clusterCount = (seen) =>
  seen === undefined ? '' : `${seen.members.length} members, ${Object.keys(seen.holders).length} shards`;
