export const idleAs = (name: string) => `  - expect: { screen: idle, golden: ${name}, within: 100ms }\n`;
