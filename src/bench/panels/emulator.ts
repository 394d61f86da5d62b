import type { Picture } from '../pictures.ts';

/** A device at the far end of a serial cable, by its manual and stricter than one. */
export interface PanelEmulator {
  /** What it was sent that a device would drop, garble or misprint; empty when all is well. */
  readonly violations: readonly string[];
  /** Whether it can show a QR at all. */
  readonly drawsQr: boolean;
  /** Whether its power comes through its port, which then goes with it. */
  readonly isPoweredByPort: boolean;
  /** Bytes as they arrive, in any portions. */
  receive(bytes: Uint8Array): void;
  /** The words on its screen. */
  shownTexts(): readonly string[];
  /** The code that it draws, with its margin, for those that draw one by themselves; undefined without one. */
  code(): Picture | undefined;
  /** What a person sees on it. */
  picture(): Picture;
  /** Power has come again: what was on its screen is gone, and a device that says something then says it. */
  restart(): void;
}

const VIOLATIONS_MAX = 1_000;

/** Holds something against the sender, unless so much is held already. */
export function addViolation(violations: string[], what: string): void {
  if (violations.length < VIOLATIONS_MAX) violations.push(what);
}
