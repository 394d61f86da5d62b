import type { Command } from 'commander';
import { port, several } from './shared/arguments.ts';

/** Adds `paybox provision`. */
export function addProvision(root: Command): void {
  root
    .command('provision')
    .description('makes a local CA, and certificates, secrets and configurations for gateway, broker and boxes')
    .requiredOption('--out <dir>', 'the folder; run again with the same one, it adds boxes and changes nothing else')
    .option(
      '--host <name>',
      'name or IP address of gateway and broker; may be repeated, boxes use the first',
      several,
      [],
    )
    .option(
      '--box <codes>',
      'a box to add, as VVB000001:VVB900001 (terminalCode:serialNumber); may be repeated',
      several,
      [],
    )
    .option('--rotate <name>', 'terminalCode of a box, or gateway, for new secrets and certificates', several, [])
    .option('--http-port <port>', "port of the gateway's HTTPS", port, 8443)
    .option('--mqtt-port <port>', 'port of MQTT over TLS', port, 8883)
    .option('--boot <dir>', 'the mounted boot partition of the one --box: writes its paybox.yaml there')
    .option('--gateway <url>', 'an existing gateway or broker; --out is then a boot partition')
    .option('--enrolment <url>', 'with --gateway: where the box enrols, if --gateway is a broker')
    .option('--ca <file>', 'with --gateway: the CA of its certificate, PEM, if it is no well-known one')
    .option(
      '--display <driver>',
      'the display of the boxes, as framebuffer or nextion; what it needs is then in the file',
    )
    .option('--wifi <ssid>', 'the Wi-Fi network of the box')
    .option('--wifi-password-file <file>', 'a file that holds its password, - for standard input')
    .option('--wifi-country <code>', 'the country of the box, as VN')
    .option('--replace', 'replace the paybox.yaml of another box')
    .action(async (options) => (await import('./actions/provision.ts')).provision(options));
}
