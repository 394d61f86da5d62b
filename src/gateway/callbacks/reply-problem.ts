import { parseJson } from '../../lib/http-client.ts';
import { suggestion } from '../../lib/suggestion.ts';
import { withoutUnseen } from '../../lib/text.ts';
import { isObject, issuesOf } from '../../protocol/codec.ts';
import { transactionSyncReply } from '../../protocol/http-api.ts';

/** A warning shows this much of a body that is not JSON: enough to tell a page from a warning of PHP. */
const BEGINNING_CHARS_MAX = 20;
const PROBLEM_CHARS_MAX = 300;
const ADDRESS_CHARS_MAX = 200;
const KEYS_MAX = 100;
const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];

/** Why the body of a reply to a callback is not the documented one; undefined if it is (PROTOCOL.md, clause SYN-3). */
export function replyProblem(body: string): string | undefined {
  if (body.trim() === '') return 'it is empty';
  const reply = parseJson(body);
  if (reply === undefined)
    return `it is not JSON: it begins with "${withoutUnseen(body.trim().slice(0, BEGINNING_CHARS_MAX))}"`;
  if (!isObject(reply)) return 'expected an object';
  const read = transactionSyncReply.safeParse(reply);
  if (read.success) return undefined;
  const words = issuesOf(read.error)
    .replaceAll('expected boolean', 'expected true or false')
    .replaceAll('expected string', 'expected a text')
    .replaceAll('expected object', 'expected an object')
    .replaceAll('received string', 'received a text')
    .replaceAll('received number', 'received a number');
  return `${words}${mistypedIn(reply, Object.keys(transactionSyncReply.shape))}`.slice(0, PROBLEM_CHARS_MAX);
}

/** The keys of an answer that are nearly those that it lacks, as the end of a sentence. */
export function mistypedIn(reply: object, known: readonly string[]): string {
  const missing = known.filter((it) => !Object.hasOwn(reply, it));
  return Object.keys(reply)
    .slice(0, KEYS_MAX)
    .filter((key) => !known.includes(key))
    .map((key) => ({ key, meant: suggestion(key, missing) }))
    .map(({ key, meant }) => (meant === '' ? '' : `; unknown key ${withoutUnseen(key)}${meant}`))
    .join('');
}

/** Says of a redirect where it leads and which option should have that address; undefined for any other answer. */
export function redirectProblem(
  { status, location }: { status: number; location?: string | undefined },
  { from, option }: { from: string; option: string },
): string | undefined {
  if (!REDIRECTS.includes(status)) return undefined;
  const to = location ? URL.parse(location, from) : null;
  if (to === null || !/^https?:$/.test(to.protocol)) {
    return `HTTP ${status} without an http(s) address in Location: redirects are not followed; put the right address into ${option}`;
  }
  // A query may be a secret, and so may a user's name: neither is shown.
  const whole = `${to.origin}${to.pathname}`;
  const address = whole.length > ADDRESS_CHARS_MAX ? `${whole.slice(0, ADDRESS_CHARS_MAX)}…` : whole;
  return `HTTP ${status} to ${address}: redirects are not followed; put that address into ${option}`;
}
