/** Characters that mean the same whether they are escaped or not (RFC 3986, section 2.3). */
const ESCAPED = /%([0-9a-f]{2})/gi;
const UNRESERVED = /^[\w.~-]$/;

/**
 * The target of a request as every part of a gateway reads it: a path without escapes that mean nothing, and its query. A
 * whole address is cut to them if it is that of `host` (RFC 9112, section 3.2.2), and left as it is for another host.
 */
export function plainTarget(target: string, host = ''): string {
  const origin = `http://${host}/`;
  const [whole = ''] = (target.startsWith(origin) ? target.slice(origin.length - 1) : target).split('#', 1);
  const queryAt = whole.indexOf('?');
  const path = queryAt === -1 ? whole : whole.slice(0, queryAt);
  return `${unescaped(path)}${whole.slice(path.length)}`;
}

function unescaped(path: string): string {
  return path.replaceAll(ESCAPED, (escaped, hex: string) => {
    const character = String.fromCharCode(Number.parseInt(hex, 16));
    return UNRESERVED.test(character) ? character : escaped;
  });
}

const CONTROL = /%[01][0-9a-f]|%7f/i;
/** Rows of an older store may have such a name, and are still to be removed. NUL is in the name of none. */
const OF_ADMINS = '/admin/v1/';
const NUL = /%00/;

/**
 * Whether everybody understands the path of a plain target alike, a proxy and a database too: no dot segments,
 * backslashes, control characters, or escapes that are some only once others are read.
 */
export function isPlainPath(path: string): boolean {
  const forbidden = path.startsWith(OF_ADMINS) ? NUL : CONTROL;
  return (
    unescaped(path) === path &&
    path.startsWith('/') &&
    !/\\|(?:^|\/)\.{1,2}(?:\/|$)/.test(path) &&
    !forbidden.test(path)
  );
}

/** Whether the query of a target, if it has one, is without control characters, which no store would find. */
export function isPlainQuery(target: string): boolean {
  const at = target.indexOf('?');
  return at === -1 || !CONTROL.test(target.slice(at));
}
