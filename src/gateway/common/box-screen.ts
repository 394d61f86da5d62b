/** The screen of a box that runs in the same process, as `paybox up` has one. */
export interface BoxScreen {
  terminalCode: string;
  /** Address of the box's own page. */
  pageUrl: string;
  /** The picture that its display shows, as PNG; undefined before the first one. */
  picture(): Uint8Array | undefined;
}
