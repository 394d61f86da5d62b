/** The module `testcontainers` of the package: the container image in a test, by testcontainers (README.md). */
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

/** Conditions on the box that are all to become true. */
export interface ContainerExpectation {
  /** As its /status says it: idle, showing, paid, … */
  state?: BoxState;
  online?: boolean;
  /** Words on its screen. */
  text?: string;
  /** Time limit in milliseconds; 5,000 if left out. */
  withinMs?: number;
}

interface ServiceAnswer {
  access_token?: string;
  status?: string;
  /** The transaction id of a payment, or the code of a refusal. */
  message?: string;
}

/** `paybox up` in a container, with all methods of GenericContainer. The image is that of this version if left out. */
export class PayboxContainer extends GenericContainer {
  // By digits and capital letters alone no random token looks like a word, which paybox would refuse.
  #adminToken = Buffer.from(systemRandom.secret(TOKEN_BYTES), 'base64url').toString('hex').toUpperCase();

  constructor(image = `paybox:${version()}`) {
    super(image);
    this.withExposedPorts(GATEWAY_PORT, BOX_PORT);
    // The line says that the box is registered too. The health check of the image would be asked after 30 s only.
    const answers = Wait.forHttp('/healthz', GATEWAY_PORT, { abortOnContainerExit: true });
    this.withWaitStrategy(Wait.forAll([Wait.forLogMessage(/paybox is ready in/), answers]));
  }

  /** The token of console and box, 128 bits or paybox does not start; a random one if left out. */
  withAdminToken(token: string): this {
    this.#adminToken = token;
    return this;
  }

  /** Where callbacks go, as the container reaches it. Without it a sample partner inside takes them. */
  withCallbackUrl(url: string): this {
    return this.withCommand(['up', '--callback-url', url]);
  }

  /** Settles once gateway and box are ready; throws what testcontainers throws. */
  override async start(): Promise<StartedPayboxContainer> {
    this.withEnvironment({ PAYBOX_ADMIN_TOKEN: this.#adminToken });
    return new StartedPayboxContainer(await super.start(), this.#adminToken);
  }
}

/** A running container: addresses as this machine reaches them, and the words of `openPaybox` that need no more than HTTP. */
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

  /** `{base_url}` of the payment QR service. */
  get serviceUrl(): string {
    return `${this.#origin(GATEWAY_PORT)}/vqr`;
  }

  /** The console, which asks for `adminToken`. */
  get consoleUrl(): string {
    return `${this.#origin(GATEWAY_PORT)}/`;
  }

  /** Origin of the box's pages, which ask for `adminToken`. */
  get boxUrl(): string {
    return this.#origin(BOX_PORT);
  }

  /** A customer's payment, by the service's test callback. Throws PayboxRefusal with the answer that refuses it. */
  async pay({ amount, content }: { amount: number; content: string }): Promise<{ transactionId: string }> {
    const { username, password } = this.partner;
    const login = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
    const { access_token } = await this.#post('/api/token_generate', login, {});
    const payment = { bankAccount: this.account.bankAccount, amount, content, transType: 'C' };
    const answer = await this.#post('/bank/api/test/transaction-callback', `Bearer ${access_token}`, payment);
    if (answer.status !== 'SUCCESS') throw new PayboxRefusal(`pay: the service answered ${answer.message}`);
    return { transactionId: answer.message ?? '' };
  }

  /** Waits until all of it is true of the box. Throws NotAsExpected, which says what is. */
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
