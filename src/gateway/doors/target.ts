/** Characters that mean the same whether they are escaped or not (RFC 3986, section 2.3). */
const ESCAPED = /%([0-9a-f]{2})/gi;
const UNRESERVED = /^[\w.~-]$/;

/**
 * Returns the target of a request as every part of a gateway reads it: a path without needless escapes, and its query.
 * A whole address is cut to both if it names `host` (RFC 9112, section 3.2.2). An address of another host stays as it
 * is.
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
/** Rows of an older store may have such a name, and an admin must be able to remove them. No name has a NUL. */
const OF_ADMINS = '/admin/v1/';
const NUL = /%00/;

/**
 * Returns true if everybody reads the path of a plain target alike, a proxy and a database too. Such a path has no dot
 * segments, backslashes, control characters, or escapes of escapes.
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

/**
 * Returns true if the query of a target has no control characters, which no store would find. A target without a query
 * passes.
 */
export function isPlainQuery(target: string): boolean {
  const at = target.indexOf('?');
  return at === -1 || !CONTROL.test(target.slice(at));
}
