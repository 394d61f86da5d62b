// Plain JavaScript: a host may run it with any Node from 18 on, which cannot read TypeScript.
import { readFileSync } from 'node:fs';

/** Given to a command that shall go on when its starter ends. */
export const DETACH = '--detach';
/** Far below the 2 s in which a program that is ended has freed its ports. */
const LOOK_MS = 250;
const ANCESTORS_MAX = 16;
const SHELL = /^(?:ba|da|a|z|k|mk|fi|tc|c|pw|nu)?sh$|^nu$|^busybox$|^elvish$/;

/**
 * Calls `onEnd` once when the program that started this one has ended, however it did. Only Linux says who that is.
 * A shell in between that was given this command by `-c`, as those of npx and npm are, belongs to whoever started it.
 * Any other shell has a job, which goes on when the shell ends, as all jobs do; so does what has a session of its own
 * (`setsid`, a unit, a container).
 */
export function onceStarterEnds(onEnd) {
  const starter = starterOf(process.pid);
  if (starter === undefined) return;
  const timer = setInterval(() => {
    const now = statusOf(starter.pid);
    if (now !== undefined && now.startedAt === starter.startedAt && !'ZX'.includes(now.state)) return;
    clearInterval(timer);
    onEnd();
  }, LOOK_MS);
  timer.unref();
}

/** The nearest ancestor that is no shell for this command; undefined where none in this session has to be followed. */
function starterOf(pid) {
  const own = statusOf(pid);
  let parent = own?.parent ?? 0;
  for (let n = 0; n < ANCESTORS_MAX && parent > 1; n += 1) {
    const status = statusOf(parent);
    if (status === undefined || status.session !== own.session) return undefined;
    if (!SHELL.test(status.name)) return status;
    if (!argumentsOf(parent).some((it) => /^-[a-zA-Z]*c$/.test(it))) return undefined;
    parent = status.parent;
  }
  return undefined;
}

function statusOf(pid) {
  try {
    // The name may hold blanks and brackets (proc_pid_stat(5)).
    const [, name, rest] = /^\d+ \((.*)\) (.*)$/s.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'));
    const fields = rest.split(' ');
    const [state, parent, session] = [fields[0], Number(fields[1]), Number(fields[3])];
    return { pid, name, state, parent, session, startedAt: fields[19] };
  } catch {
    // It has ended, it is another user's, or this is not Linux.
    return undefined;
  }
}

function argumentsOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  } catch {
    return [];
  }
}
