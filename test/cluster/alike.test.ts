import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemRandom } from '../../src/lib/random.ts';
import { newSecret } from '../../src/protocol/secret.ts';
import { temporaryFolder } from '../support/net.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { postgresServer } from '../support/stores.ts';
import { shardsOf, startMembers, type TestMember } from './members.ts';

const { missing, note } = without(PROGRAMS.postgres);
const ALL = [0, 1, 2, 3];

describe.skipIf(missing)(`a member that is not like the others${note}`, () => {
  const server = postgresServer();
  const open = async (config: Record<string, unknown> = {}) => {
    const databaseUrl = await server().database();
    const cluster = await startMembers({ databaseUrl, members: 1, shards: ALL.length, config });
    const [member] = cluster.members as [TestMember];
    return { cluster, member };
  };
  const folderWithKey = async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, 'registry.key'), `${systemRandom.secret(32)}\n`, { mode: 0o600 });
    return folder;
  };

  it.each([
    ['another basePath', async () => ({ basePath: '/bank' }), /^basePath: expected \/vqr, as the member at .+ has it/],
    [
      'another mode',
      async () => ({ sandbox: false, mode: 'live', publicUrl: 'https://pay.example' }),
      /^mode: expected sandbox/,
    ],
    ['a registry.key', async () => ({ dataDir: await folderWithKey() }), /^registry.key in dataDir: expected none/],
  ])('SHA-4 does not join with %s, and takes no shard away', async (_what, change, reason) => {
    const { cluster, member } = await open();
    await expect(cluster.start(await change())).rejects.toThrow(reason);
    await cluster.whole([member]);
    expect((await shardsOf(member)).toSorted()).toEqual(ALL);
  });

  it('joins once it is, with the same registry.key; and no first member starts with another one', async () => {
    const dataDir = await folderWithKey();
    const { cluster, member } = await open({ dataDir });
    const box = { terminalCode: 'VVB777777', serialNumber: 'VVB888888', secret: newSecret(systemRandom) };
    expect((await member.admin('/admin/v1/boxes', 'POST', box)).status).toBe(201);
    const same = await temporaryFolder();
    await copyFile(join(dataDir, 'registry.key'), join(same, 'registry.key'));
    const second = await cluster.start({ dataDir: same });
    await cluster.whole([member, second]);
    await Promise.all([member.close(), second.close()]);
    for (const wrong of [await folderWithKey(), await temporaryFolder()]) {
      await expect(cluster.start({ dataDir: wrong })).rejects.toThrow(/registry.key is (missing|another key)/);
    }
  });
});
