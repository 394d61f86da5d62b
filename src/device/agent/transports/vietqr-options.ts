import type { IClientOptions } from 'mqtt';
import { z } from 'zod';
import { enrolAnswerTopics, macAddress, macCheckSum, macDigits, macWithColons } from '../../../protocol/dialect.ts';
import { BROKER_SCHEMES } from '../../../protocol/packet-limit.ts';
import { brokerOptions, clientOptions } from './broker.ts';
import { checkTls } from './tls.ts';

/** The options that may come from a file. */
export const FROM_FILES = ['checkSumSalt', 'boxIdSalt', 'password'] as const;
const shared = z.string().min(1).max(200).optional();
const file = z.string().min(1).optional().describe('a file that holds it instead');

export const vietqrOptions = z
  .strictObject({
    ...brokerOptions('username and password'),
    macAddr: macAddress.describe('by which the service knows the box'),
    checkSumSalt: shared.describe('salt of the checkSum of an enrolment, the same for all boxes of the service'),
    checkSumSaltFile: file,
    boxIdSalt: shared.describe('salt of the boxId, the same for all boxes of the service'),
    boxIdSaltFile: file,
    username: z.string().min(1).max(200).optional().describe('login name at the broker, the same for all boxes'),
    password: shared.describe('its password'),
    passwordFile: file,
    qrLifetimeSeconds: z
      .int()
      .min(1)
      .max(86_400)
      .default(300)
      .describe('how long a dynamic QR is shown: the service does not say when it expires'),
    repeatWindowSeconds: z
      .int()
      .min(0)
      .max(3_600)
      .default(10)
      .describe('an equal notice of a payment within this time is the same payment, later ones are others'),
  })
  .superRefine((link, context) => {
    checkTls(BROKER_SCHEMES)(link, context);
    for (const name of FROM_FILES) {
      const given = [link[name], link[`${name}File`]].filter((it) => it !== undefined).length;
      const isRight = name === 'password' ? given <= 1 : given === 1;
      if (!isRight)
        context.addIssue({ code: 'custom', path: [name], message: `expected either ${name} or ${name}File` });
    }
  });

export type VietqrOptions = z.infer<typeof vietqrOptions>;

const { macAddr, username, qrLifetimeSeconds, repeatWindowSeconds } = vietqrOptions.shape;
const given = z.string('expected what all boxes of the service share, in quotes where it is a number').min(1).max(200);

/** The options in a boot file, which names the broker as its gateway. */
export const bootOptions = {
  macAddr,
  checkSumSalt: given,
  boxIdSalt: given,
  username,
  password: given.optional(),
  qrLifetimeSeconds: qrLifetimeSeconds.unwrap().optional(),
  repeatWindowSeconds: repeatWindowSeconds.unwrap().optional(),
};

/**
 * Returns a new client id for each connection. With one id for all of them, an old half-open one and the new one would
 * end each other.
 */
export function clientIdOf({ macAddr }: VietqrOptions, sessionId: string): string {
  return `${macDigits(macAddr)}${sessionId.replaceAll('-', '').slice(0, 10)}`;
}

export function loginOf(options: VietqrOptions): IClientOptions {
  const { username, password } = options;
  return clientOptions(options, { ...(username && { username }), ...(password && { password }) });
}

/** Returns the topics on which the service answers an enrolment. */
export function topicsOf({ macAddr }: VietqrOptions): string[] {
  return enrolAnswerTopics(macWithColons(macAddr));
}

/** Returns the enrolment message: the MAC address in the spelling of the firmware, with its checkSum. */
export function enrolment({ macAddr, checkSumSalt = '' }: VietqrOptions): string {
  const sent = macWithColons(macAddr);
  return JSON.stringify({ macAddr: sent, checkSum: macCheckSum(sent, checkSumSalt) });
}
