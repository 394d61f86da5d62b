import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { operationsAt, rawRequest, testServer } from './serve.ts';

const TOKEN = 'a-token-of-the-test-0123456789';

describe('the bench server', () => {
  it('the bench server describes what it serves, and serves what it describes', async () => {
    const { document, origin, ask } = await testServer();
    const names = Object.values(document.paths).flatMap((operations) => Object.values(operations));
    expect(new Set(names.map(({ operationId }) => operationId)).size).toBe(names.length);
    expect(names.length).toBeGreaterThan(20);
    for (const [path, operations] of Object.entries(document.paths)) {
      const some = path.replaceAll(/\{\w+\}/g, '1');
      const refused = await rawRequest(origin, { path: some, method: 'PATCH' });
      expect({ path, status: refused.status }).toEqual({ path, status: 405 });
      const allowed = (await ask('PATCH', some)).headers.get('allow')?.split(', ').sort();
      expect({ path, allowed }).toEqual({
        path,
        allowed: Object.keys(operations)
          .map((it) => it.toUpperCase())
          .sort(),
      });
    }
    const refs = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)];
    for (const [, name = ''] of refs) expect(document.components.schemas).toHaveProperty([name]);
  });

  it('the first page of the bench server documents every path', async () => {
    const { document, ask } = await testServer();
    const { text } = await ask('GET', '/');
    const named = [...text.matchAll(/(?<=[\s,])(\/[\w./{}]*)/g)].map(([, path = '']) => path.replace(/\/\d+/, '/1'));
    for (const path of named)
      expect({ path, is: operationsAt(document, path) !== undefined }).toEqual({ path, is: true });
    for (const path of Object.keys(document.paths).filter((it) => !['/', '/healthz'].includes(it))) {
      const pattern = new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`);
      expect({ path, named: named.some((it) => pattern.test(it)) }).toEqual({ path, named: true });
    }
  });

  it('the bench server needs no body where none is read, also from clients that always name its type', async () => {
    const { origin } = await testServer();
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${origin}/rigs/rig-9`, { method: 'DELETE', headers });
    expect({ status: response.status, ...((await response.json()) as object) }).toMatchObject({
      status: 404,
      error: 'there is no rig rig-9',
    });
    const spoilt = await fetch(`${origin}/runs`, { method: 'POST', headers, body: '{"scenarios":["__' });
    expect(spoilt.status).toBe(400);
  });

  it('the bench server reports its health and its scenarios', async () => {
    const { ask } = await testServer();
    expect((await ask('GET', '/healthz')).json).toEqual({ ok: true, runs: 0, rigs: 0 });
    const { json } = await ask('GET', '/scenarios');
    expect(json.scenarios).toContainEqual(
      expect.objectContaining({ name: 'power-cut', needs: ['turn boxes off and on', 'kill programs'] }),
    );
  });

  it.each([
    ['by a name that may be made to point here', '/', { host: 'bench.example' }, 403, 'not by a loopback name'],
    ['without one host', '/', { host: 'a b' }, 400, 'Host is not one legal name'],
    ['by a page of another origin', '/runs', { origin: 'http://evil.example' }, 403, 'a page of another origin asks'],
    ['through a proxy', '/runs', { via: '1.1 proxy' }, 403, 'through a proxy, which sent via'],
    ['by a frame of another site', '/', { 'sec-fetch-site': 'cross-site' }, 403, 'a page of another origin asks'],
  ])('refuses what is asked %s', async (_how, path, headers, status, error) => {
    const { origin } = await testServer();
    const refused = await rawRequest(origin, { path, headers });
    expect({ ...refused, text: JSON.parse(refused.text) }).toMatchObject({ status, text: { error } });
  });

  it('the bench server with a token asks for it, except for its health', async () => {
    const server = await testServer({ token: TOKEN });
    const asked = (authorization?: string) =>
      server.ask('GET', '/runs', undefined, authorization === undefined ? {} : { authorization });
    expect(await asked()).toMatchObject({ status: 401, json: { error: 'a token is needed' } });
    expect((await asked()).headers.get('www-authenticate')).toBe('Bearer realm="paybox"');
    expect(await asked(`Bearer ${TOKEN}x`)).toMatchObject({ status: 401, json: { error: 'the token is wrong' } });
    expect(await asked(`Basic ${TOKEN}`)).toMatchObject({ status: 401 });
    expect(await asked(`Bearer ${TOKEN}`)).toMatchObject({ status: 200 });
    expect(await server.ask('GET', '/healthz', undefined, {})).toMatchObject({ status: 200 });
    for (const path of ['/', '/openapi.json', '/scenarios', '/runs', '/rigs', '/nix', '/healthz/../runs']) {
      expect({ path, status: (await rawRequest(server.origin, { path })).status }).toEqual({ path, status: 401 });
    }
    // By another name it is still the owner of the token who asks; a page of another origin is not.
    const authorization = `Bearer ${TOKEN}`;
    expect(await rawRequest(server.origin, { headers: { host: 'bench.example', authorization } })).toMatchObject({
      status: 200,
    });
    expect(
      await rawRequest(server.origin, { headers: { origin: 'http://evil.example', authorization } }),
    ).toMatchObject({ status: 403 });
  });

  it('THR-29 the bench server without a token answers no request that a proxy of this machine forwards', async () => {
    const { origin } = await testServer();
    for (const name of ['x-forwarded-for', 'x-original-host', 'x-envoy-external-address', 'x-azure-clientip']) {
      const { status, text } = await rawRequest(origin, { headers: { [name]: '192.0.2.7' } });
      expect([status, text]).toEqual([403, expect.stringContaining(`through a proxy, which sent ${name}`)]);
    }
  });

  it.each([
    ['no JSON', '{', 'application/json', 400, /^the body is no JSON/],
    ['nothing', '', 'application/json', 422, /^body: expected/],
    ['a prototype', '{"__proto__":{}}', 'application/json', 400, /^the body is no JSON/],
    [
      'a form',
      'scenarios=happy-path',
      'application/x-www-form-urlencoded',
      415,
      /^the body is application\/x-www-form-urlencoded/,
    ],
    ['plain text', 'name: x', 'text/plain', 415, /^the body is text\/plain/],
    [
      'more than it takes',
      JSON.stringify({ a: 'x'.repeat(1_000_000) }),
      'application/json',
      413,
      /^the body is longer than 1000000 bytes/,
    ],
    ['a list', '[]', 'application/json', 422, /^body: expected/],
  ])('refuses %s as a body', async (_what, body, type, status, error) => {
    const { ask } = await testServer();
    const refused = await ask('POST', '/runs', body, { 'content-type': type });
    expect(refused).toMatchObject({
      status,
      json: { error: expect.stringMatching(error), fix: expect.stringMatching(/./) },
    });
  });

  it.each(['/nix', '/runs/', '/runs/run-1/junit', '/rigs/rig-1/boxes/1', '/%zz', `/runs/${'x'.repeat(5_000)}`])(
    'says that there is no %s',
    async (path) => {
      const { origin } = await testServer();
      const { status, text } = await rawRequest(origin, { path });
      expect({ status, text }).toMatchObject({
        status: 404,
        text: expect.stringMatching(/^\{"error":".+","fix":".+"\}$/),
      });
    },
  );

  it('THR-4 the bench server answers what is not HTTP, and goes on', async () => {
    const { origin, ask } = await testServer();
    for (const bytes of ['HELO bench\r\n\r\n', 'GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n']) {
      const socket = connect(Number(new URL(origin).port), '127.0.0.1');
      socket.end(bytes);
      expect(await text(socket)).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n[\s\S]*\{"error":"not HTTP"/);
    }
    expect((await ask('GET', '/healthz')).status).toBe(200);
  });

  it('the bench server lets no page load, frame or store what it answers', async () => {
    const { ask } = await testServer();
    const { headers } = await ask('GET', '/runs');
    expect(headers.get('content-security-policy')).toBe("default-src 'none'; frame-ancestors 'none'");
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('access-control-allow-origin')).toBeNull();
  });
});
