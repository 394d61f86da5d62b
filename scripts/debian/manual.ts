import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const DESCRIPTION = `The agent is the daemon inside a payment box, the gateway a mock of the payment QR service behind it. Each command's
own help follows, as the program prints it.`;

/**
 * Returns the manual page paybox(1), from the output of `paybox --help` and of each command's help in the checkout
 * `root`.
 */
export function manualOfCommand(root: string, version: string): string {
  const overview = helpOf(root, []);
  const names = [...overview.matchAll(/^ {2}([a-z-]+) .*$/gm)].map(([, name = '']) => name);
  const commands = overview.slice(overview.indexOf('\nCommands:'));
  const listed = names.filter((name) => name !== 'help' && new RegExp(`^ {2}${name} `, 'm').test(commands));
  if (listed.length === 0) throw new Error('paybox --help lists no commands');
  const sections = listed.map((name) => `.SS ${name}\n${literal(helpOf(root, [name]))}`);
  return `.TH PAYBOX 1 "" "paybox ${roff(version)}" "User Commands"
.SH NAME
paybox \\- software inside a payment QR box, and a mock of its payment service
.SH SYNOPSIS
.B paybox
.I command
.RI [ options ]
.SH DESCRIPTION
${roff(DESCRIPTION)}
${literal(overview)}
.SH COMMANDS
${sections.join('\n')}
.SH SEE ALSO
.BR paybox\\-agent (8),
.BR paybox\\-gateway (8),
.BR paybox\\-update (8)
`;
}

function helpOf(root: string, command: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, 'src/cli.js'), ...command, '--help'], {
    encoding: 'utf8',
    env: { ...process.env, COLUMNS: '100' },
  });
  if (status !== 0) throw new Error(`paybox ${command.join(' ')} --help failed: ${stderr}`);
  return stdout.trimEnd();
}

function literal(text: string): string {
  return `.nf\n${roff(text)}\n.fi`;
}

/** Escapes text for the formatter roff. */
function roff(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll(/^(?=[.'])/gm, '\\&');
}
