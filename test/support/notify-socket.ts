import { readFile } from 'node:fs/promises';
import { eventually } from './net.ts';
import { run } from './processes.ts';
import { PROGRAMS, without } from './programs.ts';

/** The service manager's side of sd_notify(3): a unix datagram socket. */
export interface NotifySocket {
  /** Every assignment received, in order, for example `READY=1`. */
  received(): string[];
  /** Waits until an assignment equal to or matching `assignment` has come. */
  until(assignment: string | RegExp): Promise<void>;
}

export const notifySocketNeeds = without(PROGRAMS.perl);

/** Prints one assignment per line. Closes file descriptors sent along, as those of a barrier. */
const LISTENER = [
  '-MSocket',
  '-e',
  `$| = 1;
   socket(my $socket, AF_UNIX, SOCK_DGRAM, 0) or die $!;
   bind($socket, pack_sockaddr_un($ARGV[0] =~ s/^@/\\0/r)) or die $!;
   while (defined recv($socket, my $message, 65536, 0)) { print $message =~ s/\\n?$/\\n/r }`,
] as const;

/** Listens at a path, or at `@name` in the abstract namespace, until the test ends. */
export async function notifySocket(address: string): Promise<NotifySocket> {
  const listener = run('perl', [...LISTENER, address]);
  await eventually(`a socket ${address}`, async () => {
    if (listener.child.exitCode !== null) throw new Error(listener.output());
    return (await readFile('/proc/net/unix', 'utf8')).includes(` ${address}`);
  });
  const received = () =>
    listener
      .output()
      .split('\n')
      .filter((line) => line !== '' && line !== 'BARRIER=1');
  const is = (wanted: string | RegExp) => (line: string) =>
    typeof wanted === 'string' ? line === wanted : wanted.test(line);
  return {
    received,
    until: async (assignment) => {
      await eventually(`${assignment} after ${received().join(' ')}`, () => received().some(is(assignment)));
    },
  };
}

/**
 * Runs a command as systemd does with `OpenFile=<path>:notify`: file descriptor 3 is a socket connected to `path`, described in the
 * environment with the process id.
 */
export const OPEN_FILE = [
  '-MSocket',
  '-e',
  `$^F = 255;
   socket(my $socket, AF_UNIX, SOCK_DGRAM, 0) or die $!;
   connect($socket, pack_sockaddr_un($ENV{NOTIFY_SOCKET})) or die $!;
   require POSIX;
   POSIX::dup2(fileno($socket), 3) or die $!;
   @ENV{qw(LISTEN_PID WATCHDOG_PID LISTEN_FDS LISTEN_FDNAMES)} = ($$, $$, 1, 'notify');
   exec @ARGV;`,
] as const;
