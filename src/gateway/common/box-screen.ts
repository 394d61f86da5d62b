/** The screen of a box that runs in the same process, as in `paybox up`. */
export interface BoxScreen {
  terminalCode: string;
  /** The address of the box's own page. */
  pageUrl: string;
  /** Returns the picture on its display as PNG, or undefined before the first one. */
  picture(): Uint8Array | undefined;
}
