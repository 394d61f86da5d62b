import { describe, expect, it } from 'vitest';
import { activeFaultView, FAULT_NAMES, FAULTS } from '../../../src/protocol/faults.ts';
import { boxWith, display } from '../box-with.ts';

async function bench({ faults }: { faults: boolean }) {
  const { agent } = await boxWith({ displays: [display('browser', {})], faults });
  return async (method: string, path: string) => {
    const response = await fetch(`${agent.origin}/_mock/faults${path}`, { method });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.startsWith('application/json');
    return { status: response.status, text, allow: response.headers.get('allow'), json: isJson && JSON.parse(text) };
  };
}

describe('the faults of a box', () => {
  it('FLT-10 the pages of a box list, order, count and end faults', async () => {
    const ask = await bench({ faults: true });
    const { json } = await ask('GET', '');
    const ofBox = FAULT_NAMES.filter((name) => FAULTS[name].place === 'box');
    expect(json.faults).toEqual(ofBox.map((name) => ({ name, place: 'box', about: FAULTS[name].about })));
    expect(json.standing).toEqual([]);

    const clock = await ask('POST', '/box-clock?seconds=600');
    expect(clock.status).toBe(201);
    expect(activeFaultView.parse(clock.json)).toMatchObject({ fault: 'box-clock', seconds: 600, happened: 0 });
    const disk = await ask('POST', '/disk-full?times=3&chance=0.5&seed=7');
    const { id } = disk.json;
    expect(disk.json).toEqual({ fault: 'disk-full', times: 3, chance: 0.5, seed: 7, id, happened: 0 });
    expect((await ask('GET', '')).json.standing).toMatchObject([{ id: clock.json.id }, { id: disk.json.id }]);

    expect(await ask('DELETE', `/${clock.json.id}`)).toMatchObject({ status: 204, text: '' });
    expect((await ask('GET', '')).json.standing).toMatchObject([{ id: disk.json.id }]);
    expect(await ask('DELETE', '')).toMatchObject({ status: 204, text: '' });
    expect((await ask('GET', '')).json.standing).toEqual([]);
  });

  it('FLT-10 the pages of a box refuse by name what is no fault', async () => {
    const ask = await bench({ faults: true });
    const list = 'expected display-gone, display-slow, serial-noise, disk-full, box-clock';
    expect(await ask('POST', '/push-twice')).toMatchObject({ status: 404, text: expect.stringContaining(list) });
    expect(await ask('DELETE', '/no-such')).toMatchObject({ status: 404, text: expect.stringContaining('no-such') });
    expect(await ask('POST', '')).toMatchObject({ status: 405, allow: 'GET, HEAD, DELETE' });
    expect(await ask('GET', '/box-clock')).toMatchObject({ status: 405, allow: 'POST, DELETE' });
    for (const wrong of ['seconds=', 'seconds=0', 'seconds=-1', 'seconds=0x10', 'times=1.5', 'chance=2', 'box=VVB1']) {
      const answer = await ask('POST', `/box-clock?${wrong}`);
      expect([wrong, answer.status]).toEqual([wrong, 400]);
      expect(answer.text).toContain('?seconds=&times=&chance=&seed=');
    }
    expect(await ask('POST', '/box-clock?times=2')).toMatchObject({
      status: 400,
      text: expect.stringContaining('times'),
    });
    expect((await ask('GET', '')).json.standing).toEqual([]);
  });

  it('FLT-10 the pages of a box refuse one fault more than the limit', async () => {
    const ask = await bench({ faults: true });
    for (let n = 0; n < 100; n += 1) expect((await ask('POST', '/display-slow')).status).toBe(201);
    expect(await ask('POST', '/display-slow')).toMatchObject({ status: 409, text: expect.stringContaining('DELETE') });
  });

  it('FLT-10 a box that was not set up for faults accepts none', async () => {
    const ask = await bench({ faults: false });
    const answer = { status: 404, text: expect.stringContaining('faults: true') };
    for (const [method, path] of [
      ['GET', ''],
      ['POST', '/display-gone'],
      ['DELETE', ''],
    ] as const) {
      expect(await ask(method, path)).toMatchObject(answer);
    }
  });
});
