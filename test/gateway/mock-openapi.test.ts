import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { BOX1, BOX3, partnerServer, processed, status, type TestGateway, testGateway } from './harness.ts';
import { schemaProblems } from './json-schema.ts';

const content = z.record(z.string(), z.object({ schema: z.unknown() })).optional();
const operation = z.object({
  requestBody: z.object({ content }).optional(),
  responses: z.record(z.string(), z.object({ content })),
});
const document = z.object({ paths: z.record(z.string(), z.record(z.string(), z.unknown())) });

/** Calls a gateway below `/_mock`, and compares each call and answer with the description. */
async function described(gateway: TestGateway) {
  const json: unknown = await (await fetch(`${gateway.origin}/openapi.json`)).json();
  const paths = Object.entries(document.parse(json).paths).filter(([path]) => path.startsWith('/_mock/'));
  const tried = new Set<string>();
  const call = async (method: string, path: string, body?: object) => {
    const bare = `/_mock${path.split('?')[0]}`;
    const [documented = '', operations = {}] =
      paths.find(([it]) => it === bare) ??
      paths.find(([it]) => new RegExp(`^${it.replace(/\{\w+\}/, '[^/]+')}$`).test(bare)) ??
      [];
    const known = operation.parse(operations[method.toLowerCase()]);
    const sent = body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
    const answer = await fetch(`${gateway.origin}/_mock${path}`, { method, ...sent });
    const response = known.responses[String(answer.status)];
    const schema = response?.content?.['application/json']?.schema;
    const text = answer.status === 204 ? '' : await answer.text();
    const given: unknown = text === '' ? undefined : JSON.parse(text);
    const problems =
      schema === undefined ? (text === '' ? [] : ['no answer is described']) : schemaProblems(json, schema, given);
    expect([method, path, answer.status, response !== undefined, problems]).toEqual([
      method,
      path,
      answer.status,
      true,
      [],
    ]);
    const taken = known.requestBody?.content?.['application/json']?.schema;
    if (answer.ok && body !== undefined) expect([path, schemaProblems(json, taken, body)]).toEqual([path, []]);
    if (answer.ok) tried.add(`${method} ${documented}`);
    return { status: answer.status, body: given as Record<string, string> & Record<string, string>[] };
  };
  const operations = paths.flatMap(([path, of]) =>
    Object.keys(of).flatMap((it) => (it === 'servers' ? [] : `${it.toUpperCase()} ${path}`)),
  );
  return { call, untried: () => operations.filter((it) => !tried.has(it)) };
}

describe('/openapi.json below /_mock', () => {
  it('ERR-1 real calls, answers and refusals fit /openapi.json below /_mock', async () => {
    const partner = await partnerServer(status(400, 'no'), processed);
    const gateway = await testGateway({ callback: { url: partner.url } });
    const { call, untried } = await described(gateway);
    await connectFakeBox({ gateway, identity: BOX1, transport: 'http', onShow: (it, show) => void it.shown(show) });
    const made = await gateway.generate();
    await gateway.sendQr({ qrCode: made.body.qrCode });
    expect((await gateway.generate({ amount: 0 })).status).toBe(400);
    for (const path of ['/about', '/boxes', `/boxes/${BOX1.terminalCode}`, `/boxes/${BOX3.terminalCode}`])
      await call('GET', path);
    expect((await call('POST', '/orders/DH001/pay')).status).toBe(200);
    expect((await call('POST', '/orders/DH001/cancel')).status).toBe(400);
    await gateway.generate({ orderId: 'DH002' });
    expect((await call('POST', '/orders/DH002/cancel')).status).toBe(200);
    const failed = await eventually('a failed callback', async () => {
      const { body } = await call('GET', '/callbacks');
      return body[0]?.status === 'failed' && body[0];
    });
    await call('GET', `/callbacks/${failed.id}`);
    expect((await call('POST', '/callbacks/resend', { partner: 'nobody' })).status).toBe(404);
    expect((await call('POST', '/callbacks/resend', { from: 'soon' })).status).toBe(400);
    await call('POST', `/callbacks/${failed.id}/resend`);
    await call('POST', '/callbacks/resend', { partner: 'demo', status: 'failed' });
    const { body: fault } = await call('POST', '/faults', { fault: 'push-lost', times: 2 });
    expect((await call('POST', '/faults', { fault: 'nothing' })).status).toBe(400);
    expect((await call('POST', '/faults', { fault: 'push-lost', box: 'VVB999999' })).status).toBe(400);
    await call('GET', '/faults');
    for (const expected of [204, 404]) expect((await call('DELETE', `/faults/${fault.id}`)).status).toBe(expected);
    await call('DELETE', '/faults');
    for (const path of [
      '/orders',
      '/payments',
      '/credits',
      '/sources',
      '/keys',
      '/callbacks/backlog',
      '/calls',
      '/enrolments',
    ]) {
      await call('GET', path);
    }
    await call('GET', '/wire?since=0&limit=2000');
    await call('POST', '/keys/rotate');
    for (const path of ['/boxes/none', '/callbacks/none', '/boxes/none/screen.png']) {
      expect((await call('GET', path)).status).toBe(404);
    }
    for (const path of ['/orders', '/payments', '/credits', '/callbacks', '/boxes', '/wire']) {
      expect((await call('GET', `${path}?limit=0`)).status).toBe(400);
    }
    for (const path of ['/orders/none/pay', '/orders/none/cancel', '/callbacks/none/resend']) {
      expect((await call('POST', path)).status).toBe(404);
    }
    expect((await call('POST', `/enrolments/${BOX1.terminalCode}/accept`, { code: '' })).status).toBe(400);
    expect((await call('POST', '/enrolments/none/accept', { code: '' })).status).toBe(404);
    expect((await call('POST', '/enrolments/none/reject')).status).toBe(404);
    expect((await call('POST', '/boxes/none/forget')).status).toBe(404);
    const notTried = ['/backup', '/events', '/boxes/{terminalCode}/screen.png'].map((it) => `GET /_mock${it}`);
    notTried.push(
      'POST /_mock/enrolments/{terminalCode}/accept',
      'POST /_mock/enrolments/{terminalCode}/reject',
      'POST /_mock/boxes/{terminalCode}/forget',
    );
    expect(untried().toSorted()).toEqual(notTried.toSorted());
  });
});
