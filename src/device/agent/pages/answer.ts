import type { OutgoingHttpHeaders } from 'node:http';

/** A response of the box's pages. */
export interface Answer {
  status: number;
  type: string;
  body: string | Uint8Array;
  headers?: OutgoingHttpHeaders;
}

/** Answers every request for `path`, and for what is below it. */
export interface PageBranch {
  readonly path: string;
  answer(request: { method: string; path: string; query: string }): Answer;
}

export function plain(status: number, text: string): Answer {
  return { status, type: 'text/plain; charset=utf-8', body: text.endsWith('\n') ? text : `${text}\n` };
}

export function json(status: number, value: unknown): Answer {
  return { status, type: 'application/json; charset=utf-8', body: JSON.stringify(value) };
}

export function nothing(): Answer {
  return { status: 204, type: 'text/plain', body: '' };
}
