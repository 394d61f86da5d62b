import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { parse, stringify } from 'yaml';
import { SPEECH_FORMAT } from '../../../src/device/voice/chime.ts';
import { encodeWav, silence } from '../../../src/device/voice/wav.ts';
import { ACCOUNT, PARTNER } from '../../e2e/walk.ts';
import { eventually } from '../../support/net.ts';
import type { Machine } from './debian-root.ts';
import { online, shows } from './packaged-box.ts';

const CONFIG = '/etc/paybox/agent.yaml';
/** Payments are called back there in vain: boxes hear of them all the same. */
const NOBODY = { url: 'http://127.0.0.1:9/', auth: { kind: 'none' } };
/** Where provision has the picture of a box whose display is one. */
const SCREEN = '/run/paybox-agent/screen.png';
/** Stands for espeak-ng: keeps the words that it is given, and makes them a short silence. */
const SPEECH = '/usr/local/bin/speech';
const WORDS = 'run/paybox-agent/words';
const GATEWAY = 'https://127.0.0.1:8443';
const PAYMENTS = `NODE_EXTRA_CA_CERTS=/root/made/ca.pem /usr/lib/paybox-agent/node -e "fetch('${GATEWAY}/_mock/payments').then(async (it) => console.log(await it.text()))"`;
const AT = `--gateway ${GATEWAY} --ca /root/made/ca.pem --username ${PARTNER.username} --password-file /root/password`;

/** Has a fresh installation tell what to do: nobody has set it up yet. */
export function tellsFreshBox(box: Machine): void {
  const { status, output } = box.run(`paybox doctor --config ${CONFIG}`);
  expect([status, output]).toEqual([2, expect.stringContaining('copy /etc/paybox/agent.example.yaml there')]);
}

/** Sets up the gateway's service with what `paybox provision` made, as device-config/README.md says. */
function setUpGateway(box: Machine): void {
  box.must('install -g paybox-gateway -m 0640 /root/made/gateway/*.* /etc/paybox-gateway');
  const file = 'etc/paybox-gateway/gateway.yaml';
  const given = parse(box.read(file)) as { boxes: object[] };
  box.write(
    file,
    stringify({
      ...given,
      dataDir: '/var/lib/paybox-gateway',
      partners: [{ ...PARTNER, accounts: [ACCOUNT.bankAccount], callback: NOBODY }],
      accounts: [ACCOUNT],
      boxes: given.boxes.map((it) => ({ ...it, account: ACCOUNT.bankAccount })),
    }),
  );
  box.must('systemctl start paybox-gateway.service');
}

/**
 * Sets up gateway and box with what `paybox provision` makes, the box by the very command that it prints, and sells once:
 * the QR is on the screen, and the payment is said and reported.
 */
export async function soldByProvisionedBox(box: Machine): Promise<void> {
  box.write('usr/local/bin/sudo', '#!/bin/sh\nexec "$@"\n');
  box.write(SPEECH.slice(1), `#!/bin/sh\n{ cat; echo; } >> /${WORDS} && cat ${SPEECH}.wav\n`);
  writeFileSync(join(box.folder, `${SPEECH}.wav`), encodeWav(silence(10, SPEECH_FORMAT)));
  box.write('root/password', PARTNER.password);
  box.must(`chmod 755 /usr/local/bin/sudo ${SPEECH}`);
  const printed = box.must(
    'paybox provision --out /root/made --host 127.0.0.1 --box VVB000001:VVB900001 --display png',
  );
  setUpGateway(box);
  const made = 'root/made/boxes/VVB000001/agent.yaml';
  const options = { command: SPEECH, player: { kind: 'aplay', command: 'true' } };
  const voice = { driver: 'espeak', chime: false, options };
  box.write(made, `${box.read(made)}${stringify({ voice })}`);
  const [, install] = /^VVB000001: .* and there: (.*)$/m.exec(printed) ?? [];
  box.must(`cd /root/made/boxes && ${install}`);
  expect(box.must('cd /etc/paybox && stat -c "%n %a %U:%G" *.* secret').split('\n')).toEqual([
    'agent.example.yaml 644 root:root',
    ...['agent.yaml', 'ca.pem', 'cert.pem', 'key.pem', 'secret'].map((name) => `${name} 640 root:paybox-agent`),
    '',
  ]);
  await online(box);
  const pushed = box.must(`paybox push ${AT} --json --amount 50000 --content DH1 --order DH1`);
  const [, qrCode = ''] = /"qrCode":"([^"]+)"/.exec(pushed) ?? [];
  await shows(box, qrCode, SCREEN);
  expect(box.must('stat -c "%a %U:%G" /var/lib/paybox/journal.db')).toBe('600 paybox-agent:paybox-agent\n');
  box.must(`paybox pay ${AT} --amount 50000 --content DH1`);
  await eventually('the payment is said', () => box.has(WORDS) && box.read(WORDS).includes('năm mươi nghìn'));
  await eventually('the payment is reported', () => /"reportedAt":"2/.test(box.must(PAYMENTS)));
  const { status, output } = box.run(`paybox doctor --config ${CONFIG}`);
  expect([status, output]).toEqual([0, expect.stringContaining('the agent writes it')]);
}
