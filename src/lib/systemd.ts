import { execFile } from 'node:child_process';
import { write } from 'node:fs';
import { promisify } from 'node:util';
import { reasonOf } from './errors.ts';
import type { Logger } from './log.ts';

/** Holds one notification to the service manager (sd_notify(3)). */
export interface SystemdNotification {
  READY?: '1';
  /** The status in one line, for people. */
  STATUS?: string;
  WATCHDOG?: '1';
  STOPPING?: '1';
}

/** Represents the service manager that started this program. */
export interface ServiceManager {
  /** The watchdog timeout; undefined without a watchdog. */
  readonly watchdogMs: number | undefined;
  /** Sends a notification and settles once it is sent. Never rejects: it logs the first failure. */
  notify(notice: SystemdNotification): Promise<void>;
}

type Send = (message: string) => Promise<void>;

/** A service manager passes its file descriptors from this number on (sd_listen_fds(3)). */
const LISTEN_FDS_START = 3;
/** The unit names that file so, as in `OpenFile=/run/systemd/notify:notify`. */
const NOTIFY_FD_NAME = 'notify';
const PROGRAM = 'systemd-notify';
const PROGRAM_TIMEOUT_MS = 5_000;
const STATUS_CHARS_MAX = 200;

/**
 * Returns the service manager that the environment names; undefined without one. Node cannot send to a unix datagram
 * socket, but can write to a connected one, which `OpenFile=` (systemd 253) passes. Without that file each notification
 * runs the program `systemd-notify`, which then needs `NotifyAccess=all`.
 */
export function serviceManager(env: NodeJS.ProcessEnv, pid: number, log: Logger): ServiceManager | undefined {
  if (!env.NOTIFY_SOCKET) return undefined;
  const fd = handedOverFd(env, pid);
  return new Manager(fd === undefined ? sendByProgram(env) : sendInto(fd), watchdogMs(env, pid), log);
}

class Manager implements ServiceManager {
  readonly watchdogMs: number | undefined;
  readonly #send: Send;
  readonly #log: Logger;
  /** Holds the next notification. A newer status replaces one that is not sent yet. */
  #waiting: SystemdNotification = {};
  #sending: Promise<void> | undefined;
  #hasFailed = false;

  constructor(send: Send, watchdogMs: number | undefined, log: Logger) {
    this.#send = send;
    this.watchdogMs = watchdogMs;
    this.#log = log;
  }

  notify(notice: SystemdNotification): Promise<void> {
    this.#waiting = { ...this.#waiting, ...notice };
    this.#sending ??= this.#sendAll();
    return this.#sending;
  }

  async #sendAll(): Promise<void> {
    while (Object.keys(this.#waiting).length > 0) {
      const message = messageOf(this.#waiting);
      this.#waiting = {};
      await this.#send(message).catch((error: unknown) => this.#failed(error));
    }
    this.#sending = undefined;
  }

  #failed(error: unknown): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    this.#log.error('notify-failed', { reason: reasonOf(error) });
  }
}

function messageOf(notice: SystemdNotification): string {
  const lines = Object.entries(notice).map(([name, value]) => `${name}=${oneLine(value)}`);
  return `${lines.join('\n')}\n`;
}

/** Replaces line breaks, because one in a text from outside would start another assignment. */
function oneLine(text: string): string {
  return text.replaceAll(/\p{Cc}+/gu, ' ').slice(0, STATUS_CHARS_MAX);
}

function handedOverFd({ LISTEN_PID, LISTEN_FDNAMES = '' }: NodeJS.ProcessEnv, pid: number): number | undefined {
  const index = LISTEN_FDNAMES.split(':').indexOf(NOTIFY_FD_NAME);
  return LISTEN_PID === String(pid) && index >= 0 ? LISTEN_FDS_START + index : undefined;
}

/** Returns the watchdog timeout as sd_watchdog_enabled(3) does. */
function watchdogMs({ WATCHDOG_USEC, WATCHDOG_PID }: NodeJS.ProcessEnv, pid: number): number | undefined {
  if (WATCHDOG_PID !== undefined && WATCHDOG_PID !== String(pid)) return undefined;
  const microseconds = Number(WATCHDOG_USEC);
  return Number.isSafeInteger(microseconds) && microseconds > 0 ? microseconds / 1000 : undefined;
}

/** Writes asynchronously: with `writeSync`, a service manager that does not read would block the event loop. */
function sendInto(fd: number): Send {
  return (message) =>
    new Promise((resolve, reject) => {
      write(fd, message, (error) => (error === null ? resolve() : reject(error)));
    });
}

function sendByProgram(env: NodeJS.ProcessEnv): Send {
  const limits = { env, timeout: PROGRAM_TIMEOUT_MS, killSignal: 'SIGKILL' } as const;
  return async (message) => {
    await promisify(execFile)(PROGRAM, message.trimEnd().split('\n'), limits);
  };
}
