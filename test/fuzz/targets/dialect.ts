import { isDeepStrictEqual } from 'node:util';
import { VietqrMemory } from '../../../src/device/agent/transports/vietqr-memory.ts';
import { UNKNOWN_BOOT } from '../../../src/lib/boot.ts';
import { systemRandom } from '../../../src/lib/random.ts';
import { VirtualClock } from '../../../src/lib/virtual-clock.ts';
import {
  DIALECT_RIGHTS,
  decodeEnrolAnswer,
  decodeEnrolRequest,
  decodeNotice,
  isAmong,
  isOneLevel,
  parseHostTopic,
} from '../../../src/protocol/dialect.ts';
import { mutated } from '../bytes.ts';
import { ACCOUNT, QR_CODE } from '../corpus.ts';
import { mutatedJson } from '../json.ts';
import { listeningLog } from '../logs.ts';
import { hold, holdNamed, pure, type Target } from '../target.ts';
import { decoded } from './protocol.ts';

const bytesOf = (...values: object[]) => values.map((it) => Buffer.from(JSON.stringify(it)));

const NOTICES = bytesOf(
  { notificationType: 'N16', bankShortName: 'MB', ...ACCOUNT, terminalName: 'S1', qrCode: QR_CODE, imgBank: '' },
  { notificationType: 'N17', amount: '50,000', qrCode: QR_CODE },
  { notificationType: 'N05', amount: '25000.0', message: 'Nhan 25000.0 VND' },
  { notificationType: 'N12', transactionReceiveId: 'x' },
  { notificationType: 'N00' },
);
const MAC = '02:00:5E:10:00:01';
const REQUESTS = bytesOf({ macAddr: MAC, checkSum: '0'.repeat(32), localIP: '192.0.2.1' });
const ENROLLED = { qrCertificate: 'a-certificate', boxId: 'VlZCMDAwMDAx' };
const ANSWERS = bytesOf(ENROLLED);
const HOST_TOPICS = [
  ...['vietqr/request/S1', 'vietqr/requestQR/S1', 'vietqr/request-status/S1', 'vietqr/test/transaction-callback'],
  ...[
    'vietqr/request/S1\0S2',
    'vietqr/request/S1\0+',
    'vietqr/request/',
    'vietqr/cash/S1',
    'vietqr/request/+',
    '/vqr/handle-box',
  ],
].map((it) => Buffer.from(it));

/** No answer goes to a topic that a host may not read, whatever terminalCode the topic or the body names. */
const hostTopic: Target['open'] = pure((input) => {
  const [topic = '', named = ''] = input.toString().split('\0');
  const asked = parseHostTopic(topic);
  if (asked === undefined) return false;
  hold(isAmong(DIALECT_RIGHTS.write, topic), () => `${topic} is answered, and nobody may write it`);
  const code = isOneLevel(named) ? named : asked.terminalCode;
  for (const to of asked.answersFor(code)) {
    hold(isAmong(DIALECT_RIGHTS.read, to), () => `an answer on ${to}, which nobody may read`);
  }
  return true;
});

const OWNER = 'mqtts://broker.example 02005E100001';
const PAYMENT = { digest: 'd', transactionId: '46f00000-0000-4000-8000-000000000001', paidAtMs: 1_767_225_600_000 };
const MEMORIES = bytesOf(
  { v: 1, owner: OWNER, enrolled: ENROLLED, linked: { account: ACCOUNT, staticQr: QR_CODE }, payments: [PAYMENT] },
  { v: 1, owner: OWNER, enrolled: { ...ENROLLED, qrCertificate: QR_CODE } },
  { v: 1, owner: 'another', enrolled: ENROLLED },
);

/** Whatever is in the file of the link, the box starts, takes the next payment, and reads again what it then wrote. */
const linkFile: Target['open'] = () => ({
  feed: async (input) => {
    const clock = new VirtualClock();
    let text = input.toString();
    const { log, lines } = listeningLog(clock);
    const write = async (next: string) => {
      text = next;
    };
    const box = { memory: { read: async () => text, write }, boot: UNKNOWN_BOOT };
    const open = () => VietqrMemory.open(OWNER, { clock, log, random: systemRandom, box, repeatWindowMs: 10_000 });
    const first = await open();
    for (const { reason } of lines) holdNamed(String(reason).replaceAll('received undefined', ''));
    const { enrolled, linked } = first;
    const payment = await first.payment({ notificationType: 'N05', amount: 25_000, message: 'Nhan 25000' });
    const again = await open();
    hold(isDeepStrictEqual([again.enrolled, again.linked], [enrolled, linked]), () => 'the box forgot what it wrote');
    const told = await again.payment({ notificationType: 'N05', amount: 25_000, message: 'Nhan 25000' });
    hold(told.repeated && told.transactionId === payment.transactionId, () => 'a payment would be said twice');
    return enrolled !== undefined || linked !== undefined;
  },
});

export const DIALECT: Target[] = [
  { name: 'notice of the dialect', inputs: 2_000, make: (it) => mutatedJson(NOTICES, it), open: decoded(decodeNotice) },
  {
    name: 'enrolment in the dialect',
    inputs: 1_000,
    make: (it) => mutatedJson(REQUESTS, it),
    open: decoded(decodeEnrolRequest),
  },
  {
    name: 'answer to that enrolment',
    inputs: 1_000,
    make: (it) => mutatedJson(ANSWERS, it),
    open: decoded(decodeEnrolAnswer),
  },
  { name: 'topic of a host', inputs: 1_000, make: (it) => mutated(HOST_TOPICS, it), open: hostTopic },
  { name: 'file of the link', inputs: 2_000, make: (it) => mutatedJson(MEMORIES, it), open: linkFile },
];
