import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';

const QMP_TIMEOUT_MS = 10_000;

/** Runs one QEMU monitor command on its own connection. */
export async function monitor(path: string, name: string, args: object): Promise<void> {
  const socket = connect(path);
  socket.setTimeout(QMP_TIMEOUT_MS, () => socket.destroy(new Error(`no answer to ${name}`)));
  try {
    const lines = createInterface({ input: socket })[Symbol.asyncIterator]();
    const answer = async () => {
      for (;;) {
        const { value, done } = await lines.next();
        if (done) throw new Error(`the monitor has closed on ${name}`);
        const message = JSON.parse(value) as { return?: object; error?: { desc: string }; QMP?: object };
        if (message.error !== undefined) throw new Error(`${name}: ${message.error.desc}`);
        if (message.return !== undefined || message.QMP !== undefined) return;
      }
    };
    await once(socket, 'connect');
    await answer();
    for (const execute of [{ execute: 'qmp_capabilities' }, { execute: name, arguments: args }]) {
      socket.write(`${JSON.stringify(execute)}\n`);
      await answer();
    }
  } finally {
    socket.destroy();
  }
}
