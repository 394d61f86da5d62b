/** ASCII that the usual character ROM (A00) of HD44780 displays draws as something else: `\` as the sign of the yen, `~` as an arrow. */
export const HD44780_INSTEAD: Readonly<Record<string, string>> = { '\\': '/', '~': '.' };
