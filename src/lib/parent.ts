/**
 * Has this program end in order when the one that started it is gone, however that ended, also if it is gone already.
 * Only with a channel to it (`stdio: 'ipc'`); one without stays.
 */
export function endWithParent(): void {
  if (process.connected === undefined) return;
  const end = () => process.kill(process.pid, 'SIGTERM');
  if (!process.connected) {
    end();
    return;
  }
  process.channel?.unref();
  process.once('disconnect', end);
}
