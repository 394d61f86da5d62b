import { $, pill, stack, table, time } from './elements.js';

const COLUMNS = [
  ['Source', 'mono'],
  ['Last webhook', 'time'],
  ['Last catch-up', 'time'],
  ['Found by catch-up', 'amount'],
  ['', ''],
];

/** Draws the sources of money, and up to which time each agrees with the gateway. */
export function sources(all) {
  $('source-section').hidden = all.length === 0;
  return [
    table(
      COLUMNS,
      all.map((it) => ({
        cells: [
          stack(it.name, it.kind),
          it.lastWebhook ? time(it.lastWebhook) : 'none yet',
          it.list ? agreed(it) : 'no list in the file',
          it.list ? String(it.found) : '',
          it.problem ? stack(pill('list failed', 'bad'), it.problem) : '',
        ],
      })),
      '',
    ),
  ];
}

function agreed({ lastCatchUp, agreedUpTo }) {
  return lastCatchUp ? stack(time(lastCatchUp), `agrees up to ${time(agreedUpTo)}`) : 'none yet';
}
