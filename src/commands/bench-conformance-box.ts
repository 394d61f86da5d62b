import { probeOf, screenProbe } from '../bench/probes.ts';
import { BOX_CHECKS } from '../conformance/box/checks/all.ts';
import { isAnyHost, openExternalBox, ownAddress } from '../conformance/box/external-box.ts';
import type { JudgedIdentity } from '../conformance/box/gateway/endpoint.ts';
import { boxLacks } from '../conformance/box/subject.ts';
import { BOX_NOT_JUDGED } from '../conformance/box/unjudged.ts';
import { createSuite, type JudgeTarget } from '../conformance/suite.ts';
import { selectNotJudged } from '../conformance/unjudged.ts';
import { ConfigError } from '../lib/errors.ts';
import { systemRandom } from '../lib/random.ts';
import { boxCode } from '../protocol/fields.ts';
import { authorityIn, facesOf } from './bench-conformance-tls.ts';
import { boxTokenOf, secretFrom } from './secrets.ts';

/** What a person gives about a box that is judged. */
export interface BoxOptionsGiven {
  /** terminalCode and serialNumber, with a colon between. */
  awaitBox?: string;
  boxSecretFile?: string;
  boxPage?: string;
  boxTokenFile?: string;
  listen?: string;
  mqttPort?: number;
  httpPort?: number;
  /** A folder that `paybox provision` made. */
  tls?: string;
  probe?: string;
  restartCommand?: string;
  /** Seconds. */
  within?: number;
  slow?: boolean;
}

const MQTT_PORT = 18_840;
const HTTP_PORT = 8_840;
const WITHIN_SECONDS = 120;

/** Any box, once it has connected. Throws ConfigError that names the option. */
export function awaitedBox(given: BoxOptionsGiven, isWanted: (clause: string) => boolean): JudgeTarget {
  const checks = BOX_CHECKS.filter(({ clause }) => isWanted(clause));
  const identity = identityOf(given);
  const { boxPage: url, probe, listen: host = '127.0.0.1', restartCommand } = given;
  if (url !== undefined && !/^https?:\/\/[^@]+$/.test(url)) {
    throw new ConfigError(`--box-page ${url}: expected the origin of the box's pages, as http://192.168.1.20:8810`);
  }
  const token = boxTokenOf(given);
  const pages = url === undefined ? undefined : screenProbe;
  const authority = given.tls === undefined ? undefined : authorityIn(given.tls);
  const target = `box ${identity.terminalCode}`;
  return {
    target,
    size: checks.length,
    unjudged: selectNotJudged(BOX_NOT_JUDGED, isWanted),
    open: async (signal) => {
      const faces = authority && (await facesOf(authority, isAnyHost(host) ? ownAddress() : host));
      const subject = await openExternalBox({
        identity,
        tls: faces,
        place: { host, mqttPort: given.mqttPort ?? MQTT_PORT, httpPort: given.httpPort ?? HTTP_PORT },
        url,
        token,
        probe: probe === undefined ? pages : probeOf(probe),
        restartCommand,
        withinMs: (given.within ?? WITHIN_SECONDS) * 1000,
        random: systemRandom,
        signal,
        onListening: (lines) => process.stderr.write(`${lines.join('\n')}\n`),
        onProgress: (told) => process.stderr.write(`… ${told}\n`),
      });
      const lacks = (need: Parameters<typeof boxLacks>[1]) => boxLacks(subject, need, given.slow === true);
      const close = () => subject.controls.close();
      return createSuite(checks, { subject, time: subject.time, lacks, close });
    },
  };
}

function identityOf({ awaitBox = '', boxSecretFile }: BoxOptionsGiven): JudgedIdentity {
  const [terminalCode = '', serialNumber = '', ...more] = awaitBox.split(':');
  const isRight = [terminalCode, serialNumber].every((code) => boxCode.safeParse(code).success) && more.length === 0;
  if (!isRight) {
    throw new ConfigError(`--await-box ${awaitBox}: expected terminalCode:serialNumber, as VVB000001:VVB900001`);
  }
  if (boxSecretFile === undefined) {
    throw new ConfigError('--box-secret-file is needed with --await-box: a file that holds the secret of the box');
  }
  return { terminalCode, serialNumber, secret: secretFrom('--box-secret-file', boxSecretFile) };
}
