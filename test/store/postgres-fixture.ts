export const at = (databaseUrl: string, port: number) =>
  Object.assign(new URL(databaseUrl), { port: String(port) }).href;
