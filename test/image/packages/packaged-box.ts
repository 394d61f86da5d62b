import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../../support/net.ts';
import { decodeQrTwice } from '../../support/qr-decoders.ts';
import type { Machine } from './debian-root.ts';

/** Emulated or busy, a machine takes its time to connect. */
const ONLINE_TIMEOUT_MS = 120_000;

export const AGENT_YAML = `box: { terminalCode: VVB000001, serialNumber: VVB900001, secret: Sample-box-secret-known-to-all }
link: { transport: mqtt, url: "mqtt://127.0.0.1:18830" }
displays: [{ driver: png, path: /var/lib/paybox/screen.png }]
dataDir: /var/lib/paybox
`;

/** Sets up the gateway and the box that are installed, until the box shows the QR of an order; what that QR holds. */
export async function opened(box: Machine): Promise<string> {
  const sample = box.read('usr/lib/paybox-gateway/device-config/gateway.yaml');
  box.write('etc/paybox-gateway/gateway.yaml', sample.replace(/^dataDir: .*$/m, 'dataDir: /var/lib/paybox-gateway'));
  box.write('etc/paybox/agent.yaml', AGENT_YAML);
  box.must(
    'chgrp paybox-agent /etc/paybox/*.yaml && chgrp paybox-gateway /etc/paybox-gateway/*.yaml && chmod 0640 /etc/paybox/*.yaml /etc/paybox-gateway/*.yaml && systemctl start paybox-gateway.service && systemctl restart paybox-agent.service',
  );
  return pushed(box, 'DH001');
}

async function pushed(box: Machine, content: string): Promise<string> {
  await online(box);
  const answers = box.must(`paybox push --json --amount 50000 --content ${content} --order ${content}`);
  const qrCode = /"qrCode":"([^"]+)"/.exec(answers)?.[1];
  if (qrCode === undefined) throw new Error(`no QR in ${answers}`);
  await shows(box, qrCode);
  return qrCode;
}

/** Waits until two decoders read exactly this on the box's screen, a file. */
export async function shows(box: Machine, qrCode: string, screen = '/var/lib/paybox/screen.png'): Promise<void> {
  await eventually('the QR on the screen', () => {
    try {
      return decodeQrTwice(readFileSync(join(box.folder, screen))).every((it) => it === qrCode);
    } catch {
      return false;
    }
  }).catch((error: unknown) => {
    throw new Error(`${error}\n${box.logs()}`);
  });
}

const healthz =
  'exec 3<>/dev/tcp/127.0.0.1/8810; printf "GET /healthz HTTP/1.0\\r\\nHost: 127.0.0.1\\r\\n\\r\\n" >&3; cat <&3';

export async function online(box: Machine): Promise<void> {
  await eventually('online', () => box.run(healthz).output.includes('"online":true'), ONLINE_TIMEOUT_MS).catch(
    (error: unknown) => {
      throw new Error(`${error}\n${box.logs()}`);
    },
  );
}
