/** This is the module `testcontainers` of the package: it runs the container image in a test (README.md). */
import { AbstractStartedContainer, GenericContainer, type StartedTestContainer, Wait } from 'testcontainers';
import { systemClock } from '../../lib/clock.ts';
import { askHttp } from '../../lib/http-client.ts';
import { systemRandom } from '../../lib/random.ts';
import { version } from '../../lib/version.ts';
import { NotAsExpected, PayboxRefusal } from './index.ts';
import type { BoxState } from './words.ts';

const [GATEWAY_PORT, BOX_PORT] = [8800, 8810];
const TOKEN_BYTES = 24;
const LIMITS = { timeoutMs: 10_000, bytesMax: 1_000_000 };
const EXPECT_WITHIN_MS = 5_000;
const POLL_MS = 50;

/** Conditions on the box that must all become true. */
export interface ContainerExpectation {
  /** The state in its /status: idle, showing, paid, … */
  state?: BoxState;
  online?: boolean;
  /** Words on its screen. */
  text?: string;
  /** The time limit in milliseconds; 5,000 by default. */
  withinMs?: number;
}

interface ServiceAnswer {
  access_token?: string;
  status?: string;
  /** The transaction id of a payment, or the code of a refusal. */
  message?: string;
}

/**
 * Runs `paybox up` in a container, with all methods of GenericContainer. By default it uses the image of this version.
 */
export class PayboxContainer extends GenericContainer {
  // The token has digits and capital letters only. So no random token looks like a word, which paybox would refuse.
  #adminToken = Buffer.from(systemRandom.secret(TOKEN_BYTES), 'base64url').toString('hex').toUpperCase();

  constructor(image = `paybox:${version()}`) {
    super(image);
    this.withExposedPorts(GATEWAY_PORT, BOX_PORT);
    // The line also says that the box is registered. Docker runs the image's health check after 30 s only.
    const answers = Wait.forHttp('/healthz', GATEWAY_PORT, { abortOnContainerExit: true });
    this.withWaitStrategy(Wait.forAll([Wait.forLogMessage(/paybox is ready in/), answers]));
  }

  /** Sets the token of console and box; a random one by default. paybox refuses to start with less than 128 bits. */
  withAdminToken(token: string): this {
    this.#adminToken = token;
    return this;
  }

  /**
   * Sets where callbacks go, as the container reaches it. By default a sample partner inside the container receives
   * them.
   */
  withCallbackUrl(url: string): this {
    return this.withCommand(['up', '--callback-url', url]);
  }

  /** Resolves once gateway and box are ready. Throws the errors of testcontainers. */
  override async start(): Promise<StartedPayboxContainer> {
    this.withEnvironment({ PAYBOX_ADMIN_TOKEN: this.#adminToken });
    return new StartedPayboxContainer(await super.start(), this.#adminToken);
  }
}

/**
 * Gives the addresses of a running container as this machine reaches them, and the methods of `openPaybox` that need
 * only HTTP.
 */
export class StartedPayboxContainer extends AbstractStartedContainer {
  readonly adminToken: string;
  /** The shop's login at the service. */
  readonly partner = { username: 'demo', password: 'demo-secret' } as const;
  /** The account that is linked to the box. */
  readonly account = { bankAccount: '0123456789', bankCode: 'MB', userBankName: 'NGUYEN VAN A' } as const;
  readonly box = { terminalCode: 'VVB000001', serialNumber: 'VVB900001' } as const;

  constructor(started: StartedTestContainer, adminToken: string) {
    super(started);
    this.adminToken = adminToken;
  }

  /** Returns the `{base_url}` of the payment QR service. */
  get serviceUrl(): string {
    return `${this.#origin(GATEWAY_PORT)}/vqr`;
  }

  /** Returns the address of the console, which asks for `adminToken`. */
  get consoleUrl(): string {
    return `${this.#origin(GATEWAY_PORT)}/`;
  }

  /** Returns the origin of the box's pages, which ask for `adminToken`. */
  get boxUrl(): string {
    return this.#origin(BOX_PORT);
  }

  /**
   * Makes a customer's payment by the service's test callback. Throws PayboxRefusal with the answer that refuses it.
   */
  async pay({ amount, content }: { amount: number; content: string }): Promise<{ transactionId: string }> {
    const { username, password } = this.partner;
    const login = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
    const { access_token } = await this.#post('/api/token_generate', login, {});
    const payment = { bankAccount: this.account.bankAccount, amount, content, transType: 'C' };
    const answer = await this.#post('/bank/api/test/transaction-callback', `Bearer ${access_token}`, payment);
    if (answer.status !== 'SUCCESS') throw new PayboxRefusal(`pay: the service answered ${answer.message}`);
    return { transactionId: answer.message ?? '' };
  }

  /** Waits until all conditions on the box are true. Throws NotAsExpected, which says how the box differs. */
  async expect({ withinMs = EXPECT_WITHIN_MS, text, ...wanted }: ContainerExpectation): Promise<void> {
    const untilMs = systemClock.monotonicMs() + withinMs;
    for (;;) {
      const shown = await this.#ofBox('/screen.txt');
      const { state, online } = JSON.parse(await this.#ofBox('/status')) as { state: BoxState; online: boolean };
      const isText = text === undefined || shown.includes(text);
      if (isText && (wanted.state ?? state) === state && (wanted.online ?? online) === online) return;
      if (systemClock.monotonicMs() >= untilMs) {
        const expected = JSON.stringify({ ...wanted, text });
        const actual = JSON.stringify({ state, online, text: shown });
        throw new NotAsExpected(`box: expected ${expected}, is ${actual}, after ${withinMs} ms`, { expected, actual });
      }
      await systemClock.sleep(POLL_MS);
    }
  }

  #origin(port: number): string {
    return `http://${this.getHost()}:${this.getMappedPort(port)}`;
  }

  async #ofBox(path: string): Promise<string> {
    const headers = { authorization: `Bearer ${this.adminToken}` };
    const { status, body } = await askHttp(`${this.boxUrl}${path}`, { headers }, LIMITS);
    if (status !== 200) throw new PayboxRefusal(`${path} of the box answered ${status}: ${body}`);
    return body.toString();
  }

  async #post(path: string, authorization: string, json: object): Promise<ServiceAnswer> {
    const headers = { authorization, 'content-type': 'application/json' };
    const request = { method: 'POST', headers, body: JSON.stringify(json) };
    const { status, body } = await askHttp(`${this.serviceUrl}${path}`, request, LIMITS);
    if (status !== 200) throw new PayboxRefusal(`${path} answered ${status}: ${body}`);
    return JSON.parse(body.toString()) as ServiceAnswer;
  }
}
