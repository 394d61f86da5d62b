import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { freePort, temporaryFolder } from '../support/net.ts';
import { payboxToEnd } from '../support/processes.ts';

interface Finding {
  check: string;
  result: string;
  found: string;
  fix: string;
}

async function configWith(change: object): Promise<{ file: string; gatewayPort: number }> {
  const folder = await temporaryFolder();
  const gatewayPort = await freePort();
  const file = join(folder, 'box.yaml');
  const config = {
    box: { terminalCode: 'VVB000001', serialNumber: 'VVB900001', secret: 'sample-box-secret' },
    link: { transport: 'mqtt', url: `mqtt://127.0.0.1:${gatewayPort}` },
    displays: [{ driver: 'png', path: 'screen.png', width: 480, height: 320 }],
    http: { port: await freePort() },
    dataDir: 'box',
    ...change,
  };
  await writeFile(file, JSON.stringify(config));
  return { file, gatewayPort };
}

async function findings(file: string): Promise<{ code: number | string; of: (check: string) => Finding | undefined }> {
  const { code, output } = await payboxToEnd('doctor', '--config', file, '--json');
  const all = JSON.parse(output) as Finding[];
  return { code, of: (check) => all.find((finding) => finding.check === check) };
}

describe('paybox doctor', () => {
  it('ends with 0 when all is well and prints the verdict for each length of QR', async () => {
    const { file, gatewayPort } = await configWith({});
    const server = createServer().listen(gatewayPort, '127.0.0.1');
    onTestFinished(() => {
      server.close();
    });
    const { code, output } = await payboxToEnd('doctor', '--config', file);
    expect(output).not.toContain('failed');
    expect(code).toBe(0);
    for (const chars of [94, 142, 220, 280])
      expect(output).toMatch(new RegExp(`QR of ${chars} characters .*modules of \\d+ px`));
  });

  it('ends with 1 and says what to do when no gateway listens', async () => {
    const { file, gatewayPort } = await configWith({});
    const { code, of } = await findings(file);
    expect(code).toBe(1);
    expect(of('gateway')).toMatchObject({ result: 'failed', found: expect.stringContaining(`${gatewayPort}`) });
    expect(of('gateway')?.fix).toContain('link.url');
    expect(of('display png')?.result).toBe('ok');
  });

  it('warns where a display cannot show a QR, and fails where it cannot be opened', async () => {
    const small = await configWith({ displays: [{ driver: 'png', path: 'screen.png', width: 32, height: 32 }] });
    const dense = await findings(small.file);
    expect(dense.of('QR of 94 characters')).toMatchObject({
      result: 'warning',
      found: expect.stringMatching(/24 x 24/),
    });
    const absent = await configWith({ displays: [{ driver: 'terminal' }] });
    expect((await findings(absent.file)).of('display terminal')).toMatchObject({ result: 'failed' });
  });

  it('fails where the box could not write anything down', async () => {
    const { file } = await configWith({ dataDir: 'taken/box' });
    await mkdir(join(file, '..'), { recursive: true });
    await writeFile(join(file, '..', 'taken'), 'a file where a folder should be');
    const { code, of } = await findings(file);
    expect(code).toBe(1);
    expect(of('storage')).toMatchObject({ result: 'failed', fix: expect.stringContaining('dataDir') });
  });

  it('ends with 2 for a configuration that it cannot read', async () => {
    expect(await payboxToEnd('doctor', '--config', '/nonexistent/box.yaml')).toMatchObject({ code: 2 });
  });
});
