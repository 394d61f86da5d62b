/** Declares the part of testcontainers that `container.ts` uses. Only users of containers install that package. */
declare module 'testcontainers' {
  export interface WaitStrategy {
    withStartupTimeout(startupTimeoutMs: number): WaitStrategy;
  }

  export const Wait: {
    forAll(waitStrategies: WaitStrategy[]): WaitStrategy;
    forHttp(path: string, port: number, options?: { abortOnContainerExit?: boolean }): WaitStrategy;
    forLogMessage(message: RegExp, times?: number): WaitStrategy;
  };

  export interface StartedTestContainer {
    getHost(): string;
    getMappedPort(port: number): number;
    stop(): Promise<unknown>;
  }

  export class GenericContainer {
    constructor(image: string);
    start(): Promise<StartedTestContainer>;
    withCommand(command: string[]): this;
    withEnvironment(environment: Record<string, string>): this;
    withExposedPorts(...ports: number[]): this;
    withWaitStrategy(waitStrategy: WaitStrategy): this;
  }

  export class AbstractStartedContainer implements StartedTestContainer {
    constructor(startedTestContainer: StartedTestContainer);
    getHost(): string;
    getMappedPort(port: number): number;
    stop(): Promise<unknown>;
  }
}
