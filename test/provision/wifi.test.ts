import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Wifi, wifiFileOf } from '../../src/device/setup/wifi.ts';
import { temporaryFolder } from '../support/net.ts';

const WIFI: Wifi = { ssid: 'Quán "1"', psk: 'a \\ "b" #c;', country: 'VN' };

async function machineWith(...programs: string[]): Promise<string> {
  const root = await temporaryFolder();
  for (const program of programs) {
    await mkdir(dirname(join(root, program)), { recursive: true });
    await writeFile(join(root, program), '');
  }
  return root;
}

async function fileFor(program: string, wifi: Wifi = WIFI) {
  const file = await wifiFileOf(wifi, await machineWith(program));
  if (file === undefined) throw new Error('no file');
  return file;
}

describe('the file for a network', () => {
  it('the file for a network is of the first program that is there, and none where there is none', async () => {
    const all = ['usr/sbin/NetworkManager', 'usr/sbin/wpa_supplicant', 'usr/libexec/iwd'];
    const program = async (...there: string[]) => (await wifiFileOf(WIFI, await machineWith(...there)))?.program;
    expect(await program(...all)).toBe('NetworkManager');
    expect(await program(...all.slice(1))).toBe('wpa_supplicant');
    expect(await program(...all.slice(2))).toBe('iwd');
    expect(await program()).toBeUndefined();
  });

  it('the file for a network of NetworkManager is a keyfile', async () => {
    const { path, text } = await fileFor('usr/sbin/NetworkManager');
    expect(path).toBe('etc/NetworkManager/system-connections/paybox.nmconnection');
    expect(text).toMatch(/^uuid=[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/m);
    // The bytes of the name, so that no character of it means something.
    expect(text).toContain('\nssid=81;117;195;161;110;32;34;49;34;\n');
    expect(text).toContain('\n[wifi-security]\nkey-mgmt=wpa-psk\npsk=a \\\\ "b" #c;\n');
    expect((await fileFor('usr/sbin/NetworkManager', { ssid: 'x' })).text).not.toContain('wifi-security');
  });

  it('the file for a network of wpa_supplicant names the country', async () => {
    const { path, text, needs } = await fileFor('usr/sbin/wpa_supplicant');
    expect(path).toBe('etc/wpa_supplicant/wpa_supplicant-wlan0.conf');
    expect(needs).toContain('wpa_supplicant@wlan0');
    expect(text).toBe(`ctrl_interface=/run/wpa_supplicant
country=VN
network={
\tssid=5175c3a16e20223122
\tpsk="a \\ "b" #c;"
\tscan_ssid=1
\tkey_mgmt=WPA-PSK WPA-PSK-SHA256 SAE
\tieee80211w=1
}
`);
    const hex = 'ab'.repeat(32);
    expect((await fileFor('usr/sbin/wpa_supplicant', { ssid: 'x', psk: hex })).text).toContain(`\n\tpsk=${hex}\n`);
    expect((await fileFor('usr/sbin/wpa_supplicant', { ssid: 'x' })).text).toContain('\tkey_mgmt=NONE\n');
  });

  it('the file for a network of iwd is called as the network, or by its bytes', async () => {
    const named = await fileFor('usr/libexec/iwd', { ssid: 'Quan 1', psk: 'sample-password' });
    expect(named).toMatchObject({
      path: 'var/lib/iwd/Quan 1.psk',
      text: '[Security]\nPassphrase=sample-password\n',
    });
    expect((await fileFor('usr/libexec/iwd')).path).toBe('var/lib/iwd/=5175c3a16e20223122.psk');
    expect((await fileFor('usr/libexec/iwd', { ssid: 'x' })).path).toBe('var/lib/iwd/x.open');
  });
});
