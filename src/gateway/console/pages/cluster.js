import { $, pill, stack, table } from './elements.js';

const COLUMNS = [
  ['Gateway', 'mono'],
  ['', ''],
  ['Boxes', ''],
];

/** Reads what the gateway reports about those that share its database. Undefined at a gateway alone. */
export async function readCluster() {
  return (await (await fetch('/healthz')).json()).cluster;
}

/** Draws the gateways of a database and the number of boxes that each has. */
export function cluster(seen) {
  $('cluster-section').hidden = seen === undefined;
  if (seen === undefined) return [];
  const stateOf = ({ name, leaving }) =>
    leaving ? pill('leaving', 'wait') : name === seen.name ? pill('this one', 'live') : pill('there', 'good');
  const rows = seen.gateways.map((it) => ({
    cells: [
      it.name,
      stack(stateOf(it), it.differs.length > 0 ? `its file differs: ${it.differs.join(', ')}` : ''),
      String(it.sessions),
    ],
  }));
  return [table(COLUMNS, rows, 'The database does not answer.')];
}

export const clusterCount = (seen) => (seen === undefined ? '' : `${seen.gateways.length} gateways`);
