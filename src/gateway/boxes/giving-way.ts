/**
 * Of connections of one box that are one too many, oldest first, the one that ends: the oldest from the address that
 * has most of them, but none that is spared. Whoever has the box's login, but comes from elsewhere, ends its own.
 */
export function connectionToEvict<T>(
  connections: readonly T[],
  addressOf: (it: T) => string,
  isSpared: (it: T) => boolean,
): T | undefined {
  const open = connections.filter((it) => !isSpared(it));
  const countOf = (it: T) => connections.filter((other) => addressOf(other) === addressOf(it)).length;
  const most = Math.max(...open.map(countOf));
  return open.find((it) => countOf(it) === most);
}
