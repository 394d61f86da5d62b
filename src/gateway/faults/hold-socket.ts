import type { Socket } from 'node:net';

/**
 * Blocks a socket in both directions, including its end, until the returned function is called (PROTOCOL.md, clause
 * FLT-9). The owner may write, resume or destroy it meanwhile. That takes effect at the release.
 */
export function holdSocket(socket: Socket): () => void {
  let isDestroyed = false;
  socket.cork();
  socket.pause();
  // Until the release, these properties hide the methods of the class.
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
