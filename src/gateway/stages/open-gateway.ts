import type { Access } from '../access/open-access.ts';
import type { Tokens } from '../access/tokens.ts';
import type { Health } from '../common/health.ts';
import type { Stored } from '../common/stored.ts';
import type { BoxScreen, World } from '../common/world.ts';
import type { Edges } from '../faults/edges.ts';
import type { Boxes } from './boxes.ts';
import type { Money } from './money.ts';

/** All parts of a gateway, as its routes use them. */
export interface OpenGateway {
  world: World;
  edges: Edges;
  stored: Stored;
  boxes: Boxes;
  money: Money;
  access: Access;
  health: Health;
  /** The bearer tokens of partners. */
  tokens: Tokens;
  /** The screen of a box in this process. */
  boxScreen: BoxScreen | undefined;
  /** Returns the address of the gateway, such as `http://127.0.0.1:8800`. */
  origin(): string;
}
