import { createServer, type Server } from 'node:http';
import type { Counter } from './counter.ts';
import type { Identity } from './signed-session.ts';

/** The pages of a box as the bench reads them: `/status`, `/screen.txt`, `/metrics` and the key that clears the screen. */
export async function openPages({ terminalCode, serialNumber }: Identity, counter: () => Counter): Promise<Server> {
  const server = createServer(({ method, url }, response) => {
    const { screen, state, announcements } = counter();
    const answers: Record<string, string> = {
      '/status': JSON.stringify({ terminalCode, serialNumber, state, online: true }),
      '/screen.txt': `${screen.text}${screen.qr ?? ''}\n`,
      '/metrics': `# TYPE paybox_box_announcements_total counter\npaybox_box_announcements_total ${announcements}\n`,
    };
    const answer = answers[url ?? ''];
    if (method === 'POST' && url === '/keys/dismiss') {
      counter().dismiss();
      response.writeHead(204).end();
    } else response.writeHead(answer === undefined ? 404 : 200).end(answer);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}
