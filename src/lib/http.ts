/**
 * The HTTP part of the platform, without its WebSocket: an `import` of `node:http` evaluates every export of it, which
 * keeps 14 MB in memory that a box has no use for.
 */
export const { Agent, createServer, request } = process.getBuiltinModule('node:http');
