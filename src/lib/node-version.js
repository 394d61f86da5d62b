// This file is plain JavaScript. A host may run it with any Node, which may not read TypeScript.

/**
 * Lists the oldest releases of Node with everything that paybox needs, as `engines` writes them: SQLite with its backup
 * (22.16), and the choice of certificate authorities at run time (22.19, 24.5).
 */
export const SUPPORTED_NODE = '^22.19.0 || >=24.5.0';
/** The same in words. */
export const NEEDED_NODE = 'Node 22.19, 24.5 or newer';

/** Names Bun or Deno, which report a Node version without all of Node; returns undefined for Node itself. */
export function otherEngine(versions = process.versions) {
  return ['bun', 'deno'].find((name) => versions[name] !== undefined);
}

/** Returns whether an engine with these `process.versions`, by default this one, can run paybox. */
export function isSupportedNode(versions = process.versions) {
  if (otherEngine(versions) !== undefined) return false;
  const [major = 0, minor = 0] = versions.node.split('.').map(Number);
  return major > 24 || (major === 24 && minor >= 5) || (major === 22 && minor >= 19);
}

/** Names an engine with these `process.versions`, by default this one, in words. */
export function thisNode(versions = process.versions) {
  const { bun, deno, node } = versions;
  if (bun !== undefined) return `Bun ${bun}`;
  return deno === undefined ? `Node ${node}` : `Deno ${deno}`;
}

/** Hides the warning of Node 22 that its SQLite may change. Each supported release has been tested with it. */
export function acceptSqlite() {
  const emit = process.emitWarning;
  process.emitWarning = (warning, ...rest) => {
    if (!String(warning).startsWith('SQLite is an experimental feature')) emit.call(process, warning, ...rest);
  };
}
