/** The displays on a serial port that the bench emulates, by the names of their drivers. */
export const PANEL_NAMES = [
  'nextion',
  'dwin',
  'dqr',
  'usb-bitmap',
  'escpos',
  'cd5220',
  'matrix-orbital',
  'openlcd',
] as const;

export type PanelName = (typeof PANEL_NAMES)[number];

export function isPanelName(name: string): name is PanelName {
  return PANEL_NAMES.some((it) => it === name);
}
