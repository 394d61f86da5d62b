/** Characters that mean the same whether they are escaped or not (RFC 3986, section 2.3). */
const ESCAPED = /%([0-9a-f]{2})/gi;
const UNRESERVED = /^[\w.~-]$/;
/** A whole address, which a proxy may send (RFC 9112, section 3.2.2). */
const ORIGIN = /^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i;

/** The target of a request as every part of a gateway reads it: a path without escapes that mean nothing, and its query. */
export function plainTarget(target: string): string {
  const [whole = ''] = target.replace(ORIGIN, '').split('#', 1);
  const queryAt = whole.indexOf('?');
  const path = queryAt === -1 ? whole : whole.slice(0, queryAt);
  const plain = path.replaceAll(ESCAPED, (escaped, hex: string) => {
    const character = String.fromCharCode(Number.parseInt(hex, 16));
    return UNRESERVED.test(character) ? character : escaped;
  });
  return `${plain.startsWith('/') ? '' : '/'}${plain}${whole.slice(path.length)}`;
}

/** Whether everybody understands the path alike, a proxy and a database too: no dot segments, backslashes, control characters. */
export function isPlainPath(path: string): boolean {
  return !/\\|(?:^|\/)\.{1,2}(?:\/|$)|%[01][0-9a-f]|%7f/i.test(path);
}
