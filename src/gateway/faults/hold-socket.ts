import type { Socket } from 'node:net';

/**
 * Lets nothing through a socket either way, its end neither, until the returned function is called (PROTOCOL.md, clause
 * FLT-9). Its owner goes on as ever: it may write, resume or destroy the socket, which has its effect at the release.
 */
export function holdSocket(socket: Socket): () => void {
  let isDestroyed = false;
  socket.cork();
  socket.pause();
  // Own properties hide the methods of the class until the release.
  const held = {
    resume: () => socket,
    uncork: () => undefined,
    destroy: () => {
      isDestroyed = true;
      return socket;
    },
  };
  Object.assign(socket, held);
  return () => {
    for (const name of Object.keys(held)) Reflect.deleteProperty(socket, name);
    while (socket.writableCorked > 0) socket.uncork();
    socket.resume();
    if (isDestroyed) socket.destroy();
  };
}
