import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { NotAsExpected, PayboxRefusal } from './errors.ts';
import { type Failure, type Program, program } from './program.ts';
import type * as Words from './words.ts';

const SCREENS = 'paybox-screens';
/** Tests close the rig themselves. This time limit is only for a test that hangs. */
const IDLE = '24h';
/** The program begins its lines about wrong options with this. */
const ABOUT_OPTIONS = 'body: ';
const OPTIONS = ['callbackUrl', 'boxes', 'transport', 'seed', 'screens'];
const OPTIONS_FIX = 'options are callbackUrl, boxes, transport, seed and screens';

export interface PayboxOptions {
  /**
   * The shop's transaction-sync, which receives the gateway's callbacks. By default a server of paybox receives them.
   */
  callbackUrl?: string;
  /** The number of boxes; 1 by default. */
  boxes?: number;
  /** The transport between boxes and gateway, as in `paybox bench run --transport`. */
  transport?: string;
  /** The seed of all random choices. The same seed repeats them. */
  seed?: number;
  /** The folder for the screens of failed expectations, `paybox-screens` by default; false writes none. */
  screens?: string | false;
}

/** The addresses and credentials, as the program reports them. */
interface Opened {
  id: string;
  gateway: { origin: string; baseUrl: string };
  partner: { username: string; password: string };
  account: { bankAccount: string; bankCode: string; userBankName: string };
  boxes: Words.BoxAddress[];
}

/**
 * Opens a gateway and boxes for a test. Resolves once they are ready. Throws PayboxRefusal for a wrong option, or where
 * paybox cannot run.
 */
export async function openPaybox(options: PayboxOptions = {}): Promise<Paybox> {
  return Paybox.open(options);
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Checks the options, because tests in JavaScript have no types. Throws PayboxRefusal. */
function checkOptions(options: PayboxOptions): void {
  if (!isObject(options)) throw new PayboxRefusal('openPaybox: expected an object', OPTIONS_FIX);
  const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name));
  if (unknown !== undefined) throw new PayboxRefusal(`openPaybox: unknown key ${unknown}`, OPTIONS_FIX);
  const { screens } = options;
  if (screens !== undefined && screens !== false && (typeof screens !== 'string' || screens === '')) {
    throw new PayboxRefusal('openPaybox: screens: expected a folder, or false', "as screens: 'paybox-screens'");
  }
}

/**
 * Drives a gateway and boxes. It has the same steps as a scenario, and runs one after another. Any method throws
 * PayboxRefusal once the rig has ended.
 */
export class Paybox {
  /** The `{base_url}` of the payment QR service. A shop calls `${serviceUrl}/api/token_generate` and so on. */
  readonly serviceUrl: string;
  /** The origin of the gateway and its console. */
  readonly gatewayUrl: string;
  /** The shop's login at the service. */
  readonly partner: { readonly username: string; readonly password: string };
  /** The account that is linked to the boxes. */
  readonly account: { readonly bankAccount: string; readonly bankCode: string; readonly userBankName: string };
  readonly boxes: readonly Words.BoxAddress[];
  readonly #program: Program;
  readonly #rig: string;
  readonly #screens: string | false;
  #newestPayment: string | undefined;

  /** Opens the rig as `openPaybox` does. */
  static async open(options: PayboxOptions): Promise<Paybox> {
    checkOptions(options);
    const { screens = SCREENS, ...asked } = options;
    const running = program();
    const body = { ...asked, target: 'emulated', time: 'shared', idle: IDLE };
    const { result } = await running.ask({ ask: 'open', body }).catch((error: unknown) => {
      if (!(error instanceof PayboxRefusal) || !error.message.startsWith(ABOUT_OPTIONS)) throw error;
      throw new PayboxRefusal(
        error.message.split('; ')[0]?.replaceAll(ABOUT_OPTIONS, 'openPaybox: ') ?? '',
        OPTIONS_FIX,
      );
    });
    return new Paybox(running, result as Opened, screens);
  }

  private constructor(running: Program, { id, gateway, partner, account, boxes }: Opened, screens: string | false) {
    this.#program = running;
    this.#rig = id;
    this.#screens = screens;
    this.serviceUrl = gateway.baseUrl;
    this.gatewayUrl = gateway.origin;
    this.partner = partner;
    this.account = account;
    this.boxes = boxes.map(({ number, terminalCode, serialNumber, url }) => {
      return { number, terminalCode, serialNumber, url };
    });
  }

  /** Waits, in real time, until all conditions are true. Throws NotAsExpected, which names the file of the screen. */
  async expect(conditions: Words.ExpectWords, at: Words.AtBox = {}): Promise<void> {
    if (!isObject(conditions)) throw new PayboxRefusal('expect: expected conditions', "as { screen: 'payment' }");
    const { callback } = conditions;
    const expect = typeof callback === 'string' ? { ...conditions, callback: this.#callback(callback) } : conditions;
    await this.step({ ...at, expect });
  }

  /** Creates an order and its QR as a shop does, without showing it. */
  async generate(order: Words.GenerateWords): Promise<Words.GeneratedOrder> {
    return (await this.step({ generate: order })) as Words.GeneratedOrder;
  }

  /** Creates an order and sends its QR to a box, as a shop does. */
  async push(order: Words.PushWords, at: Words.AtBox = {}): Promise<Words.GeneratedOrder> {
    return (await this.step({ ...at, push: order })) as Words.GeneratedOrder;
  }

  /** Makes a customer's payment. */
  async pay(payment: Words.PayWords): Promise<Words.Payment> {
    const paid = (await this.step({ pay: payment })) as Words.Payment;
    if (paid.transactionId !== '') this.#newestPayment = paid.transactionId;
    return paid;
  }

  /** Cancels an order. */
  async cancel(order: Words.Word, answer?: Words.Word): Promise<void> {
    await this.step({ cancel: { order, ...(answer === undefined ? {} : { answer }) } });
  }

  /** Presses a key of a box. */
  async press(key: Words.Key, at: Words.AtBox = {}): Promise<void> {
    await this.step({ ...at, press: key });
  }

  /** Injects or ends a fault: a name, or `{ inject, times, for… }`, `{ box: 'off' }`, `{ end: 'all' }`. */
  async fault(fault: Words.FaultName | Words.FaultWords, at: Words.AtBox = {}): Promise<Words.ActiveFault | undefined> {
    return ((await this.step({ ...at, fault })) ?? undefined) as Words.ActiveFault | undefined;
  }

  /**
   * Skips time of the gateway and the boxes, for example `5m`, `30s` or `2h`. Everything due in it happens in its
   * order. It takes the real time that the shop needs to answer callbacks.
   */
  async skip(time: string): Promise<void> {
    if (typeof time !== 'string') throw new PayboxRefusal('skip: expected a time', "as '30s', '5m' or '2h'");
    await this.step({ wait: time.replace(/^(\d+(?:\.\d+)?) ?m$/, '$1min') });
  }

  /** Runs any step of a scenario, word for word, and returns its result. */
  async step(step: Readonly<Record<string, unknown>>): Promise<unknown> {
    const { result, failed } = await this.#ask('step', { body: step });
    if (failed !== undefined) throw this.#notAsExpected(failed, step);
    return (result as { result: unknown }).result;
  }

  /** Returns the screen of a box as a PNG file. */
  async screen(box = 1): Promise<Buffer> {
    const { result } = await this.#ask('screen', { box });
    return Buffer.from(result as string, 'base64');
  }

  /** Returns the words on the screen of a box, in lines. */
  async text(box = 1): Promise<string> {
    return (await this.#ask('text', { box })).result as string;
  }

  /** Returns the state of a box, as its /status has it. */
  async status(box = 1): Promise<Words.BoxStatus> {
    return (await this.#ask('status', { box })).result as Words.BoxStatus;
  }

  /** Returns the newest callbacks, with each attempt. */
  async callbacks(): Promise<Words.CallbackView[]> {
    return ((await this.#ask('callbacks')).result as { callbacks: Words.CallbackView[] }).callbacks;
  }

  /** Returns the report so far as an HTML page. */
  async report(): Promise<string> {
    return (await this.#ask('report')).result as string;
  }

  /** Deletes all orders, payments, callbacks and faults, for the next test. Addresses and credentials stay. */
  async reset(): Promise<void> {
    await this.#ask('reset');
    this.#newestPayment = undefined;
  }

  /** Ends the rig. Does nothing if it has ended. */
  async close(): Promise<void> {
    if (!this.#program.isOver) await this.#ask('close');
  }

  /** Ends the rig at the end of the block of `await using paybox = await openPaybox()`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #ask(
    ask: 'step' | 'screen' | 'text' | 'status' | 'callbacks' | 'report' | 'reset' | 'close',
    more: object = {},
  ) {
    return this.#program.ask({ ask, rig: this.#rig, ...more });
  }

  #callback(status: 'delivered' | 'pending' | 'failed'): Words.CallbackWords {
    if (this.#newestPayment !== undefined) return { payment: this.#newestPayment, status };
    const fix = 'name its transaction id, as { payment: id, status }';
    throw new PayboxRefusal(`expect: callback: this paybox has paid nothing with pay()`, fix);
  }

  #notAsExpected({ message, expected, actual, screen }: Failure, step: object): NotAsExpected {
    const both = { ...(expected === undefined ? {} : { expected }), ...(actual === undefined ? {} : { actual }) };
    if (!('expect' in step) || screen === undefined || this.#screens === false) return new NotAsExpected(message, both);
    const { file, problem } = keepScreen(this.#screens, message, Buffer.from(screen, 'base64'));
    if (file !== undefined) return new NotAsExpected(`${message}\nscreen: ${file}`, { ...both, screen: file });
    return new NotAsExpected(problem === undefined ? message : `${message}\nscreen not kept: ${problem}`, both);
  }
}

/** One process writes at most this many screens, so that a test in a loop does not fill the disk. */
const SCREENS_KEPT_MAX = 200;
const NAME_CHARS_MAX = 60;

let kept = 0;

/** A written screen, or the reason why it was not written. It has neither when enough are written. */
interface KeptScreen {
  file?: string;
  problem?: string;
}

/**
 * Writes the PNG into `folder`. It creates a missing folder and excludes it from the project's Git. `about` becomes a
 * part of the file's name. Never throws, because the failure of the test matters more.
 */
function keepScreen(folder: string, about: string, png: Uint8Array): KeptScreen {
  if (kept >= SCREENS_KEPT_MAX) return {};
  kept += 1;
  const words = about.replace(/[^A-Za-z0-9]+/g, '-').slice(0, NAME_CHARS_MAX);
  try {
    const file = join(resolve(folder), `${process.pid}-${kept}-${words}.png`);
    const isNew = mkdirSync(resolve(folder), { recursive: true }) !== undefined;
    // A folder that existed before keeps its own .gitignore.
    if (isNew) writeFileSync(join(resolve(folder), '.gitignore'), '*\n');
    writeFileSync(file, png);
    return { file };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}
