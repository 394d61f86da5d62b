import { $, pill, stack, table, time } from './elements.js';

const COLUMNS = [
  ['Call', 'mono'],
  ['Partner', ''],
  ['Answer', ''],
  ['Why', ''],
  ['Time', 'time'],
];

/** Draws the calls of partners that were refused, accepted leniently, or answered with a warning. */
export function calls(noted) {
  $('call-section').hidden = noted.length === 0;
  return [
    table(
      COLUMNS,
      noted.map((it) => ({
        cells: [
          it.path,
          it.by ?? '–',
          stack(pill(`HTTP ${it.status}`, it.reason === null ? 'good' : 'bad'), it.answer?.message ?? ''),
          stack(it.reason ?? '', [...it.lenient.map((what) => `taken: ${what}`), ...it.warnings].join(' · ')),
          time(it.at),
        ],
      })),
      '',
    ),
  ];
}
