import type { Display, DisplayDriver, DisplayIo, PanelFrame, PanelSurface, SerialLine } from '../contract.ts';
import { displayFault } from '../fault.ts';
import { ANSWER_TIMEOUT_MS } from '../io/answers.ts';
import { NextionExchange } from './nextion-exchange.ts';
import { assignment, encoded, type NextionOptions, NO_COMPONENT, nextionOptions } from './nextion-protocol.ts';
import { ASK_EVERY_MS, openPanel, PANEL_TEXTS, PanelDisplay, type PanelText, shortened } from './panel.ts';

/** The driver writes a QR at most this often until its component has it. On a noisy line, a draw ends earlier. */
const WRITES_MAX = 12;

/**
 * Drives Nextion and TJC panels: text commands that end with FF FF FF, each one answered (`bkcmd=3`). A panel also
 * answers "done" to a garbled text. So the driver reads QR and amount back, and shows the QR only if both are right. It
 * cannot read visibility, so the answer to `vis` must be enough. Not every HMI file reports a restart, so the driver
 * reads a text at intervals: a restart clears it.
 */
export const nextion: DisplayDriver<NextionOptions> = {
  name: 'nextion',
  summary: 'a Nextion or TJC serial panel that draws texts and the QR itself',
  options: nextionOptions,
  example: nextionOptions.parse({ path: '/dev/serial/by-id/usb-1a86_USB_Serial-if00-port0' }),
  open: (given, io, signal) => openPanel(given, io, signal, (line) => new Nextion(given, line, io)),
};

class Nextion {
  readonly display: Display;
  readonly #options: NextionOptions;
  readonly #exchange: NextionExchange;
  readonly #shown = new Map<PanelText, string>();
  #page: number | string | undefined;
  /** True if the QR is visible; undefined after a page was loaded, because nobody can read it. */
  #qrVisible: boolean | undefined;
  #qrShown: string | undefined;
  /** The number of texts written since it was opened. */
  #assignments = 0;

  constructor(given: NextionOptions, line: SerialLine, io: DisplayIo) {
    this.#options = given;
    const { path, qr, encoding } = given;
    const accents = encoding === 'utf-8';
    const surface: PanelSurface = { kind: 'panel', qr, accents };
    const display = new PanelDisplay(line, path, io, {
      surface,
      show: (frame) => this.#show(frame),
      refresh: { everyMs: ASK_EVERY_MS, run: () => this.#expectShown() },
      goodbye: () => this.#hideQr(),
    });
    this.display = display;
    this.#exchange = new NextionExchange(given, line, io, (error) => display.fail(error));
  }

  /** Finds the panel and makes it answer every command. Throws a PayboxError `DISPLAY_FAULT`. */
  async greet(signal: AbortSignal): Promise<void> {
    await this.#exchange.greet(signal);
    await this.#exchange.command(`dim=${this.#options.dim}`);
  }

  async #show(frame: PanelFrame): Promise<void> {
    this.#exchange.begin();
    const { pages, qr } = this.#options;
    const page = pages[frame.screen];
    if (page !== this.#page) {
      await this.#exchange.command(`page ${page}`, { page });
      this.#page = page;
      this.#shown.clear();
      this.#qrVisible = undefined;
      this.#qrShown = undefined;
    }
    // Other pages need no QR component.
    const hasQr = qr !== null && page === pages.payment;
    // A QR must never be visible beside the texts of another payment.
    if (hasQr && frame.qrCode !== this.#qrShown) await this.#setVisible(qr.component, false);
    const before = this.#assignments;
    for (const name of PANEL_TEXTS) await this.#setText(name, frame[name]);
    if (!hasQr || frame.qrCode === null) return;
    if (this.#assignments > before || frame.qrCode !== this.#qrShown)
      await this.#holdPayment(qr.component, frame.qrCode);
    await this.#setVisible(qr.component, true);
  }

  /**
   * Writes this QR and the amount beside it. The driver reads them back last, because a garbled command may have
   * changed any component.
   */
  async #holdPayment(component: string, qrCode: string): Promise<void> {
    const { amount } = this.#options.texts;
    const shown = this.#shown.get('amount');
    for (let left = WRITES_MAX; left > 0 && this.#exchange.hasTime(); left -= 1) {
      if (this.#qrShown !== qrCode) await this.#assign(component, qrCode);
      this.#qrShown = qrCode;
      if (amount !== null && shown !== undefined && shown !== '' && !(await this.#exchange.holds(amount, shown))) {
        await this.#assign(amount, shown);
      } else if (await this.#exchange.holds(component, qrCode)) {
        return;
      } else {
        await this.#setVisible(component, false);
        this.#qrShown = undefined;
      }
    }
    this.#shown.delete('amount');
    throw displayFault(
      `the panel on ${this.#options.path} does not hold its QR or amount as they were written`,
      'check its cable, its ground and the txt_maxl of its components, or lower the baudRate here and in its HMI file',
    );
  }

  /** Checks that the panel still contains the shortest written text. Throws if it does not. */
  async #expectShown(): Promise<void> {
    this.#exchange.begin();
    const [shortest] = this.#written().toSorted((a, b) => a.value.length - b.value.length);
    if (shortest !== undefined) await this.#exchange.expectStill(shortest.component, shortest.value);
  }

  /** Returns all texts on the page that are not empty. */
  #written(): { component: string; value: string }[] {
    const { texts, qr } = this.#options;
    const all = [...this.#shown].map(([name, value]) => ({ component: texts[name], value }));
    const code = { component: qr?.component, value: this.#qrVisible ? (this.#qrShown ?? '') : '' };
    return [...all, code].flatMap(({ component, value }) => (component && value !== '' ? [{ component, value }] : []));
  }

  async #hideQr(): Promise<void> {
    const { qr, pages } = this.#options;
    this.#exchange.begin(ANSWER_TIMEOUT_MS);
    if (qr !== null && this.#page === pages.payment) await this.#setVisible(qr.component, false);
  }

  async #setVisible(component: string, visible: boolean): Promise<void> {
    if (this.#qrVisible === visible) return;
    this.#qrVisible = undefined;
    await this.#exchange.command(`vis ${component},${visible ? 1 : 0}`, { component, page: this.#page });
    this.#qrVisible = visible;
    if (!visible) this.#qrShown = undefined;
  }

  async #setText(name: PanelText, given: string): Promise<void> {
    const component = this.#options.texts[name];
    if (component === null) return;
    const { encoding, textBytesMax } = this.#options;
    const fits = (value: string) => encoded(value).length <= textBytesMax;
    const value = shortened(given, fits, encoding === 'utf-8' ? '…' : '~');
    if (this.#shown.get(name) === value) return;
    await this.#assign(component, value, value === '' ? NO_COMPONENT : []);
    this.#shown.set(name, value);
  }

  async #assign(component: string, value: string, tolerated: readonly number[] = []): Promise<void> {
    this.#assignments += 1;
    await this.#exchange.command(
      assignment(component, value, this.#options.encoding),
      { component, page: this.#page },
      tolerated,
    );
  }
}
