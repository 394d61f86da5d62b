// This file is plain JavaScript. A host may run it with any Node from 18 on, which cannot read TypeScript.
import { readFileSync } from 'node:fs';

/** A command with this option continues when its starter ends. */
export const DETACH = '--detach';
/** This is far below the 2 s in which an ended program frees its ports. */
const LOOK_MS = 250;
const ANCESTORS_MAX = 16;
const SHELL = /^(?:ba|da|a|z|k|mk|fi|tc|c|pw|nu)?sh$|^nu$|^busybox$|^elvish$/;

/**
 * Calls `onEnd` once after the program that started this one has ended for any reason. Only Linux reveals which program
 * that is. A shell that received this command by `-c`, such as those of npx and npm, counts as part of its own starter.
 * Under any other shell this command is a job, and jobs continue after their shell; so does a command with its own
 * session (`setsid`, a unit, a container).
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

/** Returns the nearest ancestor that is not a shell for this command; undefined if this session has none to follow. */
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
    // The name may contain blanks and brackets (proc_pid_stat(5)).
    const [, name, rest] = /^\d+ \((.*)\) (.*)$/s.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'));
    const fields = rest.split(' ');
    const [state, parent, session] = [fields[0], Number(fields[1]), Number(fields[3])];
    return { pid, name, state, parent, session, startedAt: fields[19] };
  } catch {
    // The process has ended, belongs to another user, or this is not Linux.
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
