import { execFileSync } from 'node:child_process';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Health } from '../../src/gateway/common/health.ts';
import { placeAlone } from '../../src/gateway/common/place.ts';
import type { DatabaseClock } from '../../src/gateway/store/engines/database-clock.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { deviceDisk, fillDisk, memoryDisk, withoutDisks } from '../support/disk.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { startPostgres, TABLE_SPACE } from '../support/postgres.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { type TestGateway, testGateway } from './harness.ts';
import { only } from './stage-records.ts';

const { missing, note } = withoutDisks('memory');
const postgres = without(PROGRAMS.postgres);

async function healthOf(gateway: TestGateway): Promise<{ status: number; body: unknown }> {
  const answer = await fetch(`${gateway.origin}/healthz`);
  return { status: answer.status, body: await answer.json() };
}

const becomes = (gateway: TestGateway, status: number) =>
  eventually(`health ${status}`, async () => {
    const health = await healthOf(gateway);
    return health.status === status && health;
  });

describe('the health of a gateway', () => {
  it('ERR-2 the health of a gateway names a store whose file is gone, to which nothing is written, until it is back', async () => {
    const dataDir = await temporaryFolder();
    const gateway = await testGateway({ dataDir, config: { mqtt: null } });
    expect(await healthOf(gateway)).toMatchObject({ status: 200, body: { status: 'ok' } });
    await rename(dataDir, `${dataDir}-away`);
    expect(await gateway.generate()).toMatchObject({ status: 500, body: { message: 'E05' } });
    const reason = expect.stringContaining(`${dataDir}/gateway.sqlite was deleted, emptied, moved or replaced`);
    expect(await becomes(gateway, 503)).toEqual({ status: 503, body: { status: 'failed', reason } });
    // A proxy in front still finds it, as it finds one of several gateways.
    const living = await fetch(`${gateway.origin}/livez`);
    expect([living.status, await living.json()]).toEqual([200, { status: 'ok' }]);
    expect(gateway.log.find((it) => it.event === 'request-failed')).toMatchObject({ code: 'E05', reason });
    await rename(`${dataDir}-away`, dataDir);
    await becomes(gateway, 200);
    expect((await gateway.generate()).status).toBe(200);
  });
});

describe('the health of a gateway whose disk takes nothing more', () => {
  it.skipIf(missing)(
    `ERR-2 the health of a gateway reports a full disk within 2 s, and when there is room again${note}`,
    async () => {
      const disk = await memoryDisk();
      const gateway = await testGateway({ dataDir: disk.folder, config: { mqtt: null } });
      expect((await healthOf(gateway)).status).toBe(200);
      disk.fill();
      const reason = expect.stringContaining('database or disk is full');
      expect(await becomes(gateway, 503)).toEqual({ status: 503, body: { status: 'failed', reason } });
      expect(await gateway.generate()).toMatchObject({ status: 500, body: { message: 'E05' } });
      disk.makeRoom();
      await becomes(gateway, 200);
      expect((await gateway.generate()).status).toBe(200);
    },
  );

  it.skipIf(withoutDisks('device').missing)(`ERR-2 says so when the disk became read-only${note}`, async () => {
    const disk = await deviceDisk();
    const gateway = await testGateway({ dataDir: disk.folder, config: { mqtt: null } });
    expect((await healthOf(gateway)).status).toBe(200);
    disk.fail();
    const { body } = await becomes(gateway, 503);
    expect(body).toMatchObject({
      status: 'failed',
      reason: expect.stringMatching(/readonly|read-only|disk I\/O error/),
    });
  });
});

describe.skipIf(missing || postgres.missing)(
  `the health of a gateway whose database is full${note}${postgres.note}`,
  () => {
    it('ERR-2 STO-7 the health of a gateway reports a full database while orders are refused, and recovers when there is room again', async () => {
      const server = await startPostgres([], { smallDisks: true });
      onTestFinished(() => server.remove());
      const [elsewhere, disk = ''] = [await server.database(), server.disks?.space];
      execFileSync('install', ['-d', '-o', 'postgres', join(disk, TABLE_SPACE)]);
      await server.run(elsewhere, `create tablespace small location '${join(disk, TABLE_SPACE)}'`);
      await server.run(elsewhere, 'create database full_disk tablespace small');
      const databaseUrl = Object.assign(new URL(elsewhere), { pathname: '/full_disk' }).href;
      const gateway = await testGateway({ config: { mqtt: null, databaseUrl } });
      expect((await healthOf(gateway)).status).toBe(200);
      const ballast = join(disk, 'ballast');
      fillDisk(ballast);
      // The pages that the tables have already take some rows more.
      await eventually('a refused order', async () => (await gateway.generate()).status === 500);
      const reason = expect.stringContaining('No space left on device');
      expect(await becomes(gateway, 503)).toMatchObject({ status: 503, body: { status: 'failed', reason } });
      expect((await fetch(`${gateway.origin}/readyz`)).status).toBe(503);
      await rm(ballast);
      await becomes(gateway, 200);
      expect((await gateway.generate()).status).toBe(200);
      expect((await fetch(`${gateway.origin}/readyz`)).status).toBe(200);
    });
  },
);

describe('a health that is asked often', () => {
  it('a health that is asked often asks the store once a second, and once at a time while it does not answer', async () => {
    const clock = new VirtualClock();
    const answers: PromiseWithResolvers<void>[] = [];
    const check = () => {
      const answer = Promise.withResolvers<void>();
      answers.push(answer);
      return answer.promise;
    };
    let isBrokerThere = true;
    const time = only<DatabaseClock>({ state: undefined });
    const health = new Health(clock, { check }, time, () => isBrokerThere, placeAlone('run'));
    const twice = [health.problem(), health.problem()];
    answers[0]?.resolve();
    expect(await Promise.all(twice)).toEqual([undefined, undefined]);
    await clock.advance(999);
    expect([await health.problem(), answers.length]).toEqual([undefined, 1]);

    await clock.advance(1);
    const late = health.problem();
    await clock.advance(1999);
    const later = health.problem();
    await clock.advance(1);
    expect(await late).toBe('the store does not answer within 2000 ms');
    await clock.advance(2000);
    expect([await later, answers.length]).toEqual(['the store does not answer within 2000 ms', 2]);

    answers[1]?.reject(new Error('the disk is out'));
    await clock.advance(0);
    const failed = health.problem();
    answers[2]?.reject(new Error('the disk is out'));
    expect(await failed).toBe('the disk is out');

    await clock.advance(1000);
    isBrokerThere = false;
    const last = health.problem();
    answers[3]?.resolve();
    expect(await last).toBe('the MQTT broker is not connected');
  });
});
