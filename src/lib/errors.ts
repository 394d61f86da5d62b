/**
 * Says how to recover from an error, decided where it arises: `fatal` needs a person, `retryable` may pass by itself.
 */
export type Severity = 'fatal' | 'retryable';

/** Carries a stable code, a message, and a fix. */
export class PayboxError extends Error {
  readonly code: string;
  readonly severity: Severity;
  /** The remedy, for a person. It is empty if one can only wait. */
  readonly fix: string;
  /** When the peer asks to be called again, in milliseconds from now. */
  readonly retryAfterMs: number | undefined;

  constructor(
    code: string,
    message: string,
    options: { severity: Severity; fix?: string; cause?: unknown; retryAfterMs?: number | undefined },
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'PayboxError';
    this.code = code;
    this.severity = options.severity;
    this.fix = options.fix ?? '';
    this.retryAfterMs = options.retryAfterMs;
  }
}

/**
 * Reports wrong usage or configuration: exit code 2. The message names the file, the path in it and the expected value.
 */
export class ConfigError extends PayboxError {
  constructor(message: string, fix = '') {
    super('CONFIG', message, { severity: 'fatal', fix });
    this.name = 'ConfigError';
  }
}

/** Reports that a required device or peer is missing: exit code 3. */
export class MissingPeerError extends PayboxError {
  constructor(message: string, fix: string, cause?: unknown) {
    super('PEER_MISSING', message, { severity: 'retryable', fix, cause });
    this.name = 'MissingPeerError';
  }
}

/** Returns the message of any thrown value, in one line. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(reasonOf).join('; ');
  const text = error instanceof Error ? error.message || error.name : String(error);
  return text.replaceAll(/\s+/g, ' ').trim();
}

/** Returns the system error code (`ECONNREFUSED`, `EADDRINUSE`…) of any thrown value, if it has one. */
export function systemCodeOf(error: unknown): string | undefined {
  if (error instanceof AggregateError && error.errors.length > 0) return systemCodeOf(error.errors[0]);
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
