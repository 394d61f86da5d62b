import { z } from 'zod';
import type { Scene } from '../../scene.ts';
import type { DisplayDriver, PanelFrame, PanelSurface } from '../contract.ts';
import { displayFault } from '../fault.ts';
import { writeTimeoutMs } from '../io/answers.ts';
import { formatTime } from '../words.ts';
import { PanelDisplay, REPEAT_QR_EVERY_MS, serialPath, shortened } from './panel.ts';

const BETWEEN_FIELDS = '**';
const QR_SCREEN = 'DisplayQRCodeScreen';
/** The box has one line for each text. Its manual gives no limit. */
const FIELD_CHARS_MAX = 60;

const options = z.strictObject({
  path: serialPath,
  baudRate: z.literal([9_600, 115_200]).default(115_200).describe('the rate of the box; models differ'),
  id: z
    .string()
    .regex(
      /^(?![* ])(?!.*\*\*)[ -~]{0,39}[!-)+-~]$/,
      'expected 1 to 40 ASCII characters, no * at the ends nor two in a row',
    )
    .optional()
    .describe('the name under the welcome and the QR; the account when left out'),
  qrSidePixels: z.int().min(29).max(1_024).default(240).describe('the square that this model draws the QR in'),
  charsMax: z.int().min(20).max(1_000).default(400).describe('the longest payload that this model takes'),
});

/**
 * Drives Bonrix DQR payment QR boxes: one line of ASCII per screen. They answer nothing, so a frame counts as shown
 * when its bytes were sent. The driver notices neither a box without power behind a USB adapter nor a payload that
 * noise has changed. So it sends a QR again at intervals, which restores it on a box that has restarted: about 190
 * bytes, and a white screen for some tenths of a second. It sends other screens once.
 */
export const dqr: DisplayDriver<z.infer<typeof options>> = {
  name: 'dqr',
  summary: 'a Bonrix DQR payment QR box on its serial port',
  options,
  example: options.parse({ path: '/dev/serial/by-id/usb-1a86_USB_Serial-if00-port0' }),
  open: async ({ path, baudRate, id, qrSidePixels, charsMax }, io, signal) => {
    const line = await io.openSerial({ path, baudRate }, signal);
    const surface: PanelSurface = { kind: 'panel', qr: { sidePixels: qrSidePixels, charsMax }, accents: false };
    let shown = '';
    let qrMayShow = false;
    const send = async (text: string) => {
      const bytes = new TextEncoder().encode(`${text}\n`);
      await line.write(bytes, writeTimeoutMs(bytes.length, baudRate));
    };
    const show = async (frame: PanelFrame, scene: Scene) => {
      // The result shows the time of its first display.
      const wanted = lineOf(frame, scene, id, '');
      if (wanted === shown) return;
      qrMayShow ||= wanted.startsWith(QR_SCREEN);
      await send(lineOf(frame, scene, id, formatTime(io.clock.wallMs())));
      shown = wanted;
      qrMayShow = wanted.startsWith(QR_SCREEN);
    };
    const goodbye = async () => {
      if (qrMayShow) await send(welcome(id ?? '-'));
    };
    const repeat = async (frame: PanelFrame, scene: Scene) => {
      if (qrMayShow) await send(lineOf(frame, scene, id, ''));
    };
    const refresh = { everyMs: REPEAT_QR_EVERY_MS, run: repeat };
    return new PanelDisplay(line, path, io, { surface, show, refresh, goodbye });
  },
};

/** Returns the line of a frame. No screen has a place for the time left, so a countdown sends nothing. */
function lineOf(frame: PanelFrame, scene: Scene, id: string | undefined, time: string): string {
  const { title, amount, content, account, qrCode, mark } = frame;
  const marked = (...texts: string[]) => [mark, ...texts].filter((text) => text !== '').join(' ');
  const named = id ?? account;
  const name = fieldOf(named === '' ? title : marked(named));
  const order = marked(amount, scene.kind === 'paid' ? frame.hint : '', content);
  switch (scene.kind) {
    case 'too-dense':
      return welcome(fieldOf(order));
    case 'payment':
      // Words replace a payload that cannot be shown, as on all displays.
      if (qrCode === null) return welcome(fieldOf(order));
      return [QR_SCREEN, payloadField(qrCode), String(scene.amount), name].join(BETWEEN_FIELDS);
    case 'paid':
      return lineWith('DisplaySuccessQRCodeScreen', scene.transactionId, order, time);
    case 'repeat':
      // The screen and sound of a result would look like a new payment.
      return welcome(fieldOf(`${title} ${amount}`));
    case 'cancelled':
      return lineWith('DisplayCancelQRCodeScreen', '', order, time);
    case 'expired':
      return lineWith('DisplayFailQRCodeScreen', '', order, time);
    case 'enrol':
      return welcome(fieldOf(marked(content)));
    case 'account':
      return welcome(fieldOf(`${title} ${account}`));
    case 'fault':
    case 'setup':
      return lineWith('DisplayFailQRCodeScreen', '', `${title} ${content}`, time);
    case 'blank':
      // The box has no empty screen. Its welcome shows the least.
      return welcome(id ?? '-');
    default:
      return welcome(scene.kind === 'idle' ? name : fieldOf(title));
  }
}

function welcome(field: string): string {
  return ['WelcomeScreen', field].join(BETWEEN_FIELDS);
}

/** Returns a result: transaction, order and date. There is no field for the amount, so it is before the order. */
function lineWith(screen: string, ...fields: [string, string, string]): string {
  return [screen, ...fields.map(fieldOf)].join(BETWEEN_FIELDS);
}

/**
 * Returns a text as a field: short printable ASCII without field separators. It is never empty, because the box would
 * count fields wrongly.
 */
function fieldOf(text: string): string {
  const plain = text
    .replaceAll(/[^ -~]/g, ' ')
    .replaceAll(/\*+/g, '*')
    .replaceAll(/^[* ]+|[* ]+$/g, '');
  return shortened(plain, (value) => value.length <= FIELD_CHARS_MAX, '~') || '-';
}

/** Returns a payload as a field. The driver sends it unchanged or not at all. */
function payloadField(payload: string): string {
  if (/^[ -~]*$/.test(payload) && !payload.includes(BETWEEN_FIELDS) && !/^\*|\*$/.test(payload)) return payload;
  throw displayFault(
    'this payload cannot be sent to a DQR box: it has ** or characters beyond ASCII in it',
    'use another content for this order, without **',
  );
}
