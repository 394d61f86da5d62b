/** Node's HTTP module without its WebSocket: `import` of `node:http` evaluates all its exports, which costs 14 MB. */
export const { Agent, createServer, request } = process.getBuiltinModule('node:http');
