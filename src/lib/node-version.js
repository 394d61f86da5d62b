// Plain JavaScript: a host may run it with any Node, which cannot read TypeScript and may be too old for all else here.

/**
 * The oldest releases of Node that have all that paybox needs, as `engines` writes them: SQLite with its backup (22.16),
 * and the choice of certificate authorities at run time (22.19, 24.5).
 */
export const SUPPORTED_NODE = '^22.19.0 || >=24.5.0';
/** The same in words. */
export const NEEDED_NODE = 'Node 22.19, 24.5 or newer';

/** Bun or Deno, which have the number of a Node, but not all of Node; undefined for Node itself. */
export function otherEngine(versions = process.versions) {
  return ['bun', 'deno'].find((name) => versions[name] !== undefined);
}

/** Returns whether an engine with these `process.versions`, by default this one, can run paybox. */
export function isSupportedNode(versions = process.versions) {
  if (otherEngine(versions) !== undefined) return false;
  const [major = 0, minor = 0] = versions.node.split('.').map(Number);
  return major > 24 || (major === 24 && minor >= 5) || (major === 22 && minor >= 19);
}

/** An engine with these `process.versions`, by default this one, in words. */
export function thisNode(versions = process.versions) {
  const { bun, deno, node } = versions;
  if (bun !== undefined) return `Bun ${bun}`;
  return deno === undefined ? `Node ${node}` : `Deno ${deno}`;
}

/** Keeps Node 22 from warning that its SQLite may change: each release that is taken has been tried with it. */
export function acceptSqlite() {
  const emit = process.emitWarning;
  process.emitWarning = (warning, ...rest) => {
    if (!String(warning).startsWith('SQLite is an experimental feature')) emit.call(process, warning, ...rest);
  };
}
