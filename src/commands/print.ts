/** Prints each answer as a person reads it, or as JSON lines. */
export function printer(json: boolean): (step: string, answer: object, line: string) => void {
  return (step, answer, line) => {
    process.stdout.write(json ? `${JSON.stringify({ step, ...answer })}\n` : `${step.padEnd(10)}${line}\n`);
  };
}

/** Rows as aligned columns. */
export function table(rows: readonly (readonly string[])[]): string {
  const columns = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
