import { mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { loadAgentConfig } from '../../src/device/agent/config.ts';
import { agentFilesOf, readBoxFile } from '../../src/device/agent/setup/box-file.ts';
import { applyBootFile } from '../../src/device/setup/apply-boot-file.ts';
import { type Disk, realDisk } from '../../src/device/setup/disk.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/log.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { temporaryFolder } from '../support/net.ts';

const OLD_SECRET = 'The-old-secret-of-this-test-box';
const SECRET = 'The-new-secret-of-this-test-box';
const PSK = 'wifi-password';
const FILE = `# Tiệm Cà Phê
terminalCode: VVB000001
serialNumber: VVB900001
gateway: https://gateway.example
secret: ${SECRET}   # ours
wifi: { ssid: "Quán", psk: "${PSK}" }
`;
const CLEARED = FILE.replace(SECRET, 'kept').replace(`"${PSK}"`, 'kept');
const OLD = {
  box: { terminalCode: 'VVB000001', serialNumber: 'VVB900001', secret: OLD_SECRET },
  link: { transport: 'http', url: 'https://old.example' },
  dataDir: '/var/lib/paybox',
};

/** A boot partition with `file` on it, and the folder of a box that a person has configured. */
async function box(file: string | undefined = FILE) {
  const root = await temporaryFolder();
  const folders = { boot: join(root, 'boot'), config: join(root, 'etc') };
  for (const folder of Object.values(folders)) await mkdir(folder);
  const onBoot = join(folders.boot, 'paybox.yaml');
  const config = join(folders.config, 'agent.yaml');
  await writeFile(config, JSON.stringify(OLD));
  if (file !== undefined) await writeFile(onBoot, file);
  const lines = new PassThrough();
  let remounts = 0;
  const run = (disk: Disk = realDisk) =>
    applyBootFile(folders, {
      kind: {
        name: 'paybox.yaml',
        bytesMax: 65_536,
        read: async (bytes, before: Parameters<typeof readBoxFile>[1]) => readBoxFile(bytes, before),
        machineFilesOf: async () => ({ files: [] }),
        filesOf: async (settings, folder) => {
          const own = Object.entries(agentFilesOf(settings, folder, '/var/lib/paybox')).toReversed();
          const files = own.map(([name, text]) => ({ path: join(folders.config, name), text }));
          return [{ path: join(root, 'wifi'), text: `${settings.wifi?.psk}`, isSecret: true }, ...files];
        },
      },
      disk,
      random: systemRandom,
      log: createLogger(lines, systemClock, 'json'),
      whileWritable: async (work) => {
        remounts += 1;
        await work();
      },
    });
  return {
    ...folders,
    onBoot,
    config: { path: config, folder: folders.config },
    run,
    remounts: () => remounts,
    /** The secret that the box would start with. */
    secret: async () => (await loadAgentConfig(config)).box.secret,
    bootText: async () => (await readFile(onBoot, 'utf8').catch(() => undefined)) ?? '',
    wifi: () => readFile(join(root, 'wifi'), 'utf8'),
    logged: () => String(lines.read() ?? ''),
  };
}

/** Everything that is on the boot partition. */
async function allOf(folder: string): Promise<string> {
  const names = await readdir(folder);
  return (await Promise.all(names.map((name) => readFile(join(folder, name), 'latin1')))).join('\n');
}

describe('taking over the file on the boot partition', () => {
  it('makes the configuration of it, and leaves no secret there', async () => {
    const one = await box();
    expect(await one.run()).toEqual({ taken: true, problem: undefined });
    expect(await one.secret()).toBe(SECRET);
    expect(await one.wifi()).toBe(PSK);
    expect(await one.bootText()).toBe(CLEARED);
    expect(await readdir(one.boot)).toEqual(['paybox.yaml']);
    const modes = async (path: string) => ((await stat(path)).mode & 0o777).toString(8);
    const names = await readdir(one.config.folder, { recursive: true });
    const listed = await Promise.all(
      names
        .toSorted()
        .map(async (name) => [name.replace(/box-[\w-]+/, 'box'), await modes(join(one.config.folder, name))]),
    );
    expect(Object.fromEntries(listed)).toEqual({
      'agent.yaml': '640',
      // What a person had written.
      'agent.yaml.old': '640',
      box: '750',
      'box/secret': '640',
      'taken-over.json': '600',
    });
    expect(JSON.parse(await readFile(`${one.config.path}.old`, 'utf8'))).toEqual(OLD);
  });

  it('takes it once, and anew when it has changed, with what it has kept', async () => {
    const one = await box();
    await one.run();
    const made = await readFile(one.config.path, 'utf8');
    expect(await one.run()).toEqual({ taken: false, problem: undefined });
    expect(one.remounts()).toBe(1);
    await writeFile(one.config.path, `${made}# by hand\n`);
    await one.run();
    expect(await readFile(one.config.path, 'utf8')).toContain('by hand');

    await writeFile(one.onBoot, CLEARED.replace('gateway.example', 'other.example'));
    expect(await one.run()).toMatchObject({ taken: true });
    expect(await loadAgentConfig(one.config.path)).toMatchObject({
      box: { secret: SECRET },
      link: { url: 'https://other.example' },
    });
    expect(await one.wifi()).toBe(PSK);
    // The old folder is gone with the configuration that named it; what a person wrote is not.
    expect((await readdir(one.config.folder)).filter((name) => name.startsWith('box-'))).toHaveLength(1);
    expect(JSON.parse(await readFile(`${one.config.path}.old`, 'utf8'))).toEqual(OLD);

    await writeFile(one.onBoot, CLEARED.replace(/secret: .*\n/, ''));
    await one.run();
    expect(await loadAgentConfig(one.config.path)).toMatchObject({ enrolment: { url: 'https://gateway.example' } });
  });

  it('clears the same file when it is put there once more', async () => {
    const one = await box();
    await one.run();
    await writeFile(one.onBoot, FILE);
    expect(await one.run()).toMatchObject({ taken: false });
    expect(await one.bootText()).toBe(CLEARED);
  });

  it('does not put back a file that a person has taken away', async () => {
    const one = await box();
    await one.run();
    await realDisk.remove(one.onBoot);
    expect(await one.run()).toEqual({ taken: false, problem: undefined });
    expect(await readdir(one.boot)).toEqual([]);
  });

  it('does not touch the boot partition for a file without secrets', async () => {
    const one = await box(CLEARED.replace(/secret.*\n/, '').replace(', psk: kept', ''));
    expect(await one.run()).toMatchObject({ taken: true });
    expect(one.remounts()).toBe(0);
  });

  it('leaves everything as it was for a file with a mistake', async () => {
    const one = await box(FILE.replace('gateway:', 'gatway:'));
    const { taken, problem } = await one.run();
    expect(taken).toBe(false);
    expect(String(problem)).toContain('paybox.yaml:4: unknown key gatway');
    expect(await one.secret()).toBe(OLD_SECRET);
    expect(await readdir(one.config.folder)).toEqual(['agent.yaml']);
  });

  it('keeps what it has taken over when another file with a mistake comes', async () => {
    const one = await box();
    await one.run();
    await writeFile(one.onBoot, 'terminalCode: VVB000001\n\tserialNumber: x\n');
    expect(String((await one.run()).problem)).toContain('paybox.yaml:2');
    expect(await one.secret()).toBe(SECRET);
  });

  it('takes over nothing when there is no file', async () => {
    const one = await box(undefined);
    await realDisk.remove(one.onBoot);
    expect(await one.run()).toEqual({ taken: false, problem: undefined });
    expect(await one.secret()).toBe(OLD_SECRET);
  });

  it('follows no link and reads no folder', async () => {
    const one = await box();
    await realDisk.rename(one.onBoot, join(one.config.folder, 'elsewhere'));
    await symlink(join(one.config.folder, 'elsewhere'), one.onBoot);
    expect(String((await one.run()).problem)).toContain('is a link, expected a file');
    await realDisk.remove(one.onBoot);
    await mkdir(one.onBoot);
    expect(String((await one.run()).problem)).toContain('expected a file');
    expect(await one.secret()).toBe(OLD_SECRET);
  });

  it('says that what it kept of earlier cannot be read, and takes the file over anew', async () => {
    const one = await box();
    await writeFile(join(one.config.folder, 'taken-over.json'), '{"id":');
    expect(await one.run()).toMatchObject({ taken: true });
    expect(one.logged()).toContain('boot-record-unreadable');
  });
});

class PowerCut extends Error {}

/** A disk whose power goes at its `at`-th change: before it, in the middle of it, or right after. */
function cutAt(at: number, when: 'before' | 'within' | 'after'): { disk: Disk; count: () => number } {
  let count = 0;
  const cut = <Args extends unknown[]>(
    change: (...args: Args) => Promise<void>,
    begin?: (...args: Args) => Promise<void>,
  ) => {
    return async (...args: Args) => {
      count += 1;
      if (count > at) throw new PowerCut('no power');
      if (count === at && when === 'before') throw new PowerCut('cut');
      if (count === at && when === 'within' && begin !== undefined) await begin(...args);
      else await change(...args);
      if (count === at) throw new PowerCut('cut');
    };
  };
  const disk: Disk = {
    replace: cut(realDisk.replace, (path, text) => writeFile(`${path}.tmp`, text.slice(0, text.length / 2))),
    makeFolder: cut(realDisk.makeFolder),
    rename: cut(realDisk.rename),
    wipe: cut(realDisk.wipe, async (path) => writeFile(path, new Uint8Array((await stat(path)).size))),
    remove: cut(realDisk.remove),
  };
  return { disk, count: () => count };
}

const CHANGES_MAX = 40;

describe('a power cut while the file is taken over', () => {
  it.each(['before', 'within', 'after'] as const)(
    '%s any change loses nothing and leaves nothing half',
    async (when) => {
      let cuts = 0;
      for (let at = 1; at <= CHANGES_MAX; at++) {
        const one = await box();
        const { disk } = cutAt(at, when);
        const outcome = await one.run(disk).catch((error: unknown) => error);
        if (!(outcome instanceof PowerCut)) break;
        cuts += 1;
        // The box starts with what it had or with all of what it was given, and what it was given is somewhere.
        expect([OLD_SECRET, SECRET]).toContain(await one.secret());
        const kept = await readFile(join(one.config.folder, 'taken-over.json'), 'utf8').catch(() => '');
        expect((await one.bootText()).includes(SECRET) || kept.includes(SECRET), `cut ${at}`).toBe(true);

        await one.run();
        expect(await one.secret(), `cut ${at}`).toBe(SECRET);
        expect(await one.wifi()).toBe(PSK);
        expect(await one.bootText()).toBe(CLEARED);
        const left = await allOf(one.boot);
        for (const secret of [SECRET, PSK]) expect(left, `cut ${at}`).not.toContain(secret);
        expect((await readdir(one.config.folder)).filter((name) => name.startsWith('box-'))).toHaveLength(1);
        expect(JSON.parse(await readFile(`${one.config.path}.old`, 'utf8'))).toEqual(OLD);
        expect(await one.run()).toEqual({ taken: false, problem: undefined });
      }
      expect(cuts).toBeGreaterThan(9);
      expect(cuts).toBeLessThan(CHANGES_MAX);
    },
  );

  it('a newer boot file put in after a power cut counts, and the older one leaves no secret', async () => {
    for (let at = 1; at <= CHANGES_MAX; at++) {
      const one = await box();
      const outcome = await one.run(cutAt(at, 'after').disk).catch((error: unknown) => error);
      if (!(outcome instanceof PowerCut)) break;
      await writeFile(one.onBoot, FILE.replace(SECRET, 'The-third-secret-of-this-test-box'));
      await one.run();
      expect(await one.secret(), `cut ${at}`).toBe('The-third-secret-of-this-test-box');
      for (const secret of [SECRET, 'The-third-secret-of-this-test-box', PSK])
        expect(await allOf(one.boot)).not.toContain(secret);
    }
  });
});
