import { createServer as createTcpServer, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { SERVICE_CHECKS } from '../../src/bench/judges/service/checks/all.ts';
import { freePort } from '../support/net.ts';
import { clausesOf, judgeEmulated } from './service-fixture.ts';
import { FIRST, http, judged, listening, reasons } from './service-judged.ts';

function tcp(onSocket: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    onSocket(socket);
  });
  return listening(server, () => {
    for (const socket of sockets) socket.destroy();
  });
}

describe('our own service', () => {
  it('our own service keeps every clause, and no check is skipped', async () => {
    const results = await judgeEmulated({});
    expect(results.filter(({ outcome }) => outcome !== 'passed')).toEqual([]);
    expect(results.length).toBe(SERVICE_CHECKS.length);
  });
});

describe('something that is no such service', () => {
  it('the judge names a web page that is no service', async () => {
    const results = await judged(await http((_request, response) => response.end('<html>Welcome</html>')));
    expect(clausesOf(results, 'failed')).toContain('TOK-1');
    expect(results[0]?.reason).toBe('the answer has no access_token');
    expect(clausesOf(results, 'missing')).toEqual([]);
    expect(reasons(results)).toContain('needs a token, but /api/token_generate answered 200 <html>Welcome</html>');
  });

  it('the judge reports a service that is not there as missing', async () => {
    const results = await judged(`http://127.0.0.1:${await freePort()}/vqr`);
    expect(clausesOf(results, 'failed')).toEqual([]);
    expect(results[0]).toMatchObject({
      outcome: 'missing',
      reason: expect.stringMatching(/nothing answers at .*ECONNREFUSED/),
    });
    expect(results.at(-1)?.outcome).toBe('missing');
  });

  it('the judge names a program that does not speak HTTP', async () => {
    const url = await tcp((socket) => socket.once('data', () => socket.end('220 mail.example.com ESMTP\r\n\r\n')));
    const reason = expect.stringMatching(/^the answer is not HTTP/);
    expect(await judged(url, FIRST)).toMatchObject([{ outcome: 'failed', reason }]);
  });

  it('the judge stops at a program that closes every connection', async () => {
    const url = await tcp((socket) => socket.once('data', () => socket.destroy()));
    const results = await judged(url);
    expect(results[0]?.reason).toMatch(/^the connection ended without a whole answer/);
    expect(results.at(-1)?.outcome).toBe('missing');
  });
});
