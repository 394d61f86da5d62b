import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { HostResolver, type HostResolverDeps } from '../../src/lib/resolver.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { startNameServer, type Zone } from '../support/name-server.ts';
import { eventually, temporaryFolder } from '../support/net.ts';

async function namesOf(zone: Zone, more: Partial<HostResolverDeps> = {}) {
  const { server, asked } = await startNameServer(zone);
  const names = new HostResolver({ clock: systemClock, servers: [server], hostsFile: '/nowhere', ...more });
  onTestFinished(() => names.close());
  return { names, asked, zone };
}

describe('the addresses of a name', () => {
  it('SYN-9 are those that the name server says, IPv4 first, asked for once in their time', async () => {
    const clock = new VirtualClock();
    const zone: Zone = { 'shop.example': { v4: '192.0.2.7', v6: '2001:db8::7', ttl: 30 } };
    const { names, asked } = await namesOf(zone, { clock });
    const both = [
      { address: '192.0.2.7', family: 4 },
      { address: '2001:db8::7', family: 6 },
    ];
    expect(await Promise.all([names.resolve('shop.example'), names.resolve('SHOP.example.')])).toEqual([both, both]);
    await clock.advance(29_999);
    expect(await names.resolve('shop.example')).toEqual(both);
    expect(asked).toHaveLength(2);
    zone['shop.example'] = { v4: '192.0.2.8', ttl: 30 };
    await clock.advance(1);
    expect(await names.resolve('shop.example')).toEqual([{ address: '192.0.2.8', family: 4 }]);
    expect(asked).toHaveLength(4);
  });

  it('are given as dns.lookup gives them', async () => {
    const { names } = await namesOf({ 'shop.example': { v4: '192.0.2.7', v6: '2001:db8::7' } });
    const look = (options: object) =>
      new Promise((resolve) => names.lookup()('shop.example', options, (...given) => resolve(given)));
    expect(await look({})).toEqual([null, '192.0.2.7', 4]);
    expect(await look({ family: 6 })).toEqual([null, '2001:db8::7', 6]);
    expect(await look({ family: 'IPv4', all: true })).toEqual([null, [{ address: '192.0.2.7', family: 4 }]]);
    expect(await look({ all: true })).toMatchObject([null, { length: 2 }]);
  });

  it('SYN-9 of the hosts file, of localhost and of an address are known without asking', async () => {
    const hostsFile = join(await temporaryFolder(), 'hosts');
    await writeFile(
      hostsFile,
      '# a comment\n2001:db8::5 db\n192.0.2.5\tDB db.shop.example # its database\nno address\n',
    );
    const { names, asked } = await namesOf({}, { hostsFile });
    const v4 = { address: '192.0.2.5', family: 4 };
    expect(await names.resolve('db')).toEqual([v4, { address: '2001:db8::5', family: 6 }]);
    expect(await names.resolve('db.shop.example')).toEqual([v4]);
    expect(await names.resolve('192.0.2.9')).toEqual([{ address: '192.0.2.9', family: 4 }]);
    for (const host of ['localhost', 'localhost.', 'a.localhost']) {
      expect((await names.resolve(host)).map((it) => it.address)).toEqual(['127.0.0.1', '::1']);
    }
    await writeFile(hostsFile, '192.0.2.66 db localhost\n');
    for (const host of ['db', 'localhost']) {
      expect(await names.resolve(host)).toEqual([{ address: '192.0.2.66', family: 4 }]);
    }
    expect(asked).toEqual([]);
  });

  it('SYN-9 are asked of the system where name servers know none, and are refused by name where it knows none either', async () => {
    const { names, asked } = await namesOf({ 'nobody.invalid': 'unknown' });
    await expect(names.resolve('nobody.invalid')).rejects.toMatchObject({
      message: expect.stringContaining('nobody.invalid'),
      code: expect.stringMatching(/^(ENOTFOUND|ETIMEDOUT)$/),
    });
    expect(new Set(asked)).toEqual(new Set(['nobody.invalid']));
  });
});

describe('a name server that is silent', () => {
  it('SYN-9 is given up within the deadline, is not asked again at once, and holds up no other name nor the disk', async () => {
    const clock = new VirtualClock();
    const { names, asked } = await namesOf({ 'live.example': { v4: '192.0.2.1' } }, { clock });
    const dead = Array.from({ length: 30 }, (_, i) => `dead-${i}.example`);
    let givenUp = 0;
    const failures = Promise.allSettled(
      dead.map((host) =>
        names.resolve(host).finally(() => {
          givenUp += 1;
        }),
      ),
    );
    await eventually('the dead to be asked for', () => dead.every((host) => asked.includes(host)));
    expect(await names.resolve('live.example')).toMatchObject([{ address: '192.0.2.1' }]);
    await writeFile(join(await temporaryFolder(), 'x'), 'x');
    expect(givenUp).toBe(0);
    await clock.advance(4_000);
    // Without the deadline, all tries together take 15 s.
    await eventually('the dead to be given up', () => givenUp === dead.length, 8_000);
    for (const it of await failures) {
      expect(it).toMatchObject({ status: 'rejected', reason: { code: 'ETIMEDOUT' } });
    }
    const before = asked.length;
    await expect(names.resolve('dead-0.example')).rejects.toThrow('no name server answers for dead-0.example');
    expect(asked).toHaveLength(before);
  });

  it('SYN-9 takes nothing away that was known before', async () => {
    const clock = new VirtualClock();
    const zone: Zone = { 'db.example': { v4: '192.0.2.3', ttl: 1 } };
    const { names } = await namesOf(zone, { clock });
    const before = await names.resolve('db.example');
    zone['db.example'] = 'silent';
    await clock.advance(1000);
    const later = names.resolve('db.example');
    await eventually('the deadline', () => clock.sleeping().includes(1500));
    await clock.advance(1500);
    expect(await later).toEqual(before);
    await clock.advance(86_400_000);
    const muchLater = expect(names.resolve('db.example')).rejects.toMatchObject({ code: 'ETIMEDOUT' });
    await eventually('the longer deadline', () => clock.sleeping().includes(4000));
    await clock.advance(4000);
    await muchLater;
  });

  it('SYN-9 is not waited for any more once nobody asks, nor once the names are closed', async () => {
    const { names, asked } = await namesOf({}, { clock: new VirtualClock() });
    const [first, second] = [new AbortController(), new AbortController()];
    const [one, two] = [names.resolve('dead.example', first.signal), names.resolve('dead.example', second.signal)];
    await eventually('the questions', () => asked.length === 2);
    first.abort(new Error('the first is over'));
    await expect(one).rejects.toThrow('the first is over');
    second.abort(new Error('the second is over'));
    await expect(two).rejects.toThrow('the second is over');
    const third = names.resolve('dead.example');
    await eventually('new questions', () => asked.length >= 4);
    names.close();
    await expect(third).rejects.toThrow('the resolver is closed');
    await expect(names.resolve('other.example')).rejects.toThrow('the resolver is closed');
  });

  it('a silent name server is asked for 200 names at once, and no more', async () => {
    const { names } = await namesOf({});
    // Which of them is one too many is open: each reads the file of hosts first.
    const asked = Array.from({ length: 201 }, (_, i) => names.resolve(`dead-${i}.example`).catch(String));
    expect(await Promise.race(asked)).toContain('200 other names are being looked up');
    names.close();
    const refused = (await Promise.all(asked)).filter((it) => String(it).includes('200 other names'));
    expect(refused).toHaveLength(1);
  });
});
