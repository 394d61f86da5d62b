import { FAULT_NAMES, faultKind, magicContent } from '../../src/protocol/faults.ts';

/** The table of faults as the README has it. */
export function faultTable(): string {
  const rows = FAULT_NAMES.map((name) => {
    const { place, about, seconds } = faultKind(name);
    const lasts = seconds === undefined ? '' : ` (${seconds} s)`;
    const magic = place === 'box' ? '' : `\`${magicContent(name)}\``;
    return `| \`${name}\` | ${about}${lasts} | ${magic} |`;
  });
  return ['| fault | what goes wrong | content that orders it |', '|---|---|---|', ...rows].join('\n');
}
