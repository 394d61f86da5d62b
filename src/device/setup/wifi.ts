import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';

/** A Wi-Fi network to join. */
export interface Wifi {
  ssid: string;
  /** A password of 8 to 63 characters, or 64 hexadecimal digits; undefined for an open network. */
  psk?: string | undefined;
  country?: string | undefined;
}

/** A file that configures a network on a machine. */
export interface WifiFile {
  program: string;
  /** The path relative to the root of the file system. */
  path: string;
  text: string;
  /** A command that a person must run besides, so that the file is used; undefined for none. */
  needs: string | undefined;
}

const COUNTRY = 'VN';

/** Lists programs that manage Wi-Fi, best first, and where each has its configuration. */
const MANAGERS = [
  { program: 'NetworkManager', at: ['usr/sbin/NetworkManager', 'usr/bin/NetworkManager'], file: networkManagerFile },
  { program: 'wpa_supplicant', at: ['usr/sbin/wpa_supplicant', 'sbin/wpa_supplicant'], file: supplicantFile },
  { program: 'iwd', at: ['usr/libexec/iwd', 'usr/lib/iwd/iwd'], file: iwdFile },
] as const;

/**
 * Returns the file for the first of NetworkManager, wpa_supplicant and iwd that exists below `root`; undefined if none
 * does.
 */
export async function wifiFileOf(wifi: Wifi, root: string): Promise<WifiFile | undefined> {
  for (const { program, at, file } of MANAGERS) {
    const found = await Promise.all(at.map((path) => stat(join(root, path)).catch(() => undefined)));
    if (found.some((it) => it?.isFile())) return { program, ...file(wifi) };
  }
  return undefined;
}

/** Writes NetworkManager's keyfile (nm-settings-keyfile(5)), which allows a network name as byte values. */
function networkManagerFile({ ssid, psk }: Wifi) {
  const digest = createHash('sha256').update(`paybox wifi ${ssid}`).digest('hex');
  const uuid = [8, 4, 4, 4, 12].reduce<{ rest: string; parts: string[] }>(
    ({ rest, parts }, length) => ({ rest: rest.slice(length), parts: [...parts, rest.slice(0, length)] }),
    { rest: digest, parts: [] },
  );
  return {
    path: 'etc/NetworkManager/system-connections/paybox.nmconnection',
    text: lines(
      '[connection]',
      'id=paybox',
      `uuid=${uuid.parts.join('-')}`,
      'type=wifi',
      'autoconnect=true',
      '',
      '[wifi]',
      'mode=infrastructure',
      `ssid=${[...Buffer.from(ssid)].map((byte) => `${byte};`).join('')}`,
      ...(psk === undefined ? [] : ['', '[wifi-security]', 'key-mgmt=wpa-psk', `psk=${keyfileText(psk)}`]),
      '',
      '[ipv4]',
      'method=auto',
      '',
      '[ipv6]',
      'method=auto',
    ),
    needs: undefined,
  };
}

/** Returns a text as a keyfile has it: a leading space and backslashes are escaped. */
function keyfileText(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll(/^ | $/g, '\\s');
}

/** Writes wpa_supplicant.conf(5). The name is hexadecimal, so that no character can end the line. */
function supplicantFile({ ssid, psk, country = COUNTRY }: Wifi) {
  const key = psk === undefined ? 'key_mgmt=NONE' : `psk=${psk.length === 64 ? psk : `"${psk}"`}`;
  return {
    path: 'etc/wpa_supplicant/wpa_supplicant-wlan0.conf',
    text: lines(
      'ctrl_interface=/run/wpa_supplicant',
      `country=${country}`,
      'network={',
      `\tssid=${Buffer.from(ssid).toString('hex')}`,
      `\t${key}`,
      '\tscan_ssid=1',
      ...(psk === undefined ? [] : ['\tkey_mgmt=WPA-PSK WPA-PSK-SHA256 SAE', '\tieee80211w=1']),
      '}',
    ),
    needs: 'systemctl enable --now wpa_supplicant@wlan0',
  };
}

/** Writes iwd.network(5). A name with characters other than letters, digits, space, `_` and `-` is hexadecimal. */
function iwdFile({ ssid, psk }: Wifi) {
  const name = /^[\w -]+$/.test(ssid) ? ssid : `=${Buffer.from(ssid).toString('hex')}`;
  const key =
    psk?.length === 64 ? `PreSharedKey=${psk}` : `Passphrase=${psk?.replaceAll('\\', '\\\\').replace(/^ /, '\\s')}`;
  return {
    path: `var/lib/iwd/${name}.${psk === undefined ? 'open' : 'psk'}`,
    text: psk === undefined ? lines('[Settings]', 'AutoConnect=true') : lines('[Security]', key),
    needs: undefined,
  };
}

function lines(...all: string[]): string {
  return `${all.join('\n')}\n`;
}
