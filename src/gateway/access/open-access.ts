import type { BoxReach } from '../common/box-reach.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import { openRegistry, type Registry } from '../registry/registry.ts';
import { AdminTokens } from './admin-tokens.ts';
import { Authorizer } from './authorizer.ts';
import { type ConnectedBoxes, Enrolments } from './enrolments.ts';
import { openRootToken, roleOnLoopback } from './root-token.ts';

/** Decides who may do something: callers and their tokens, rows of the registry, and boxes that enrol. */
export interface Access {
  authorizer: Authorizer;
  adminTokens: AdminTokens;
  registry: Registry;
  enrolments: Enrolments;
}

/** Opens the parts that decide who may do something. Throws ConfigError without a readable or new first token. */
export async function openAccess(
  world: World,
  stored: Stored,
  boxes: ConnectedBoxes & BoxReach,
  reload: (name: string) => Promise<void>,
): Promise<Access> {
  const { clock, config, random, log, changes } = world;
  const { adminTokens: tokens } = stored.store;
  const root = openRootToken(config, random, log);
  const onLoopback = roleOnLoopback(config);
  const authorizer = new Authorizer({ root, onLoopback, tokens, logins: stored.logins, clock, log });
  changes.watch((topic) => {
    if (topic === 'registry') void authorizer.changed();
  });
  return {
    authorizer,
    adminTokens: new AdminTokens(world, stored),
    registry: openRegistry(world, stored, boxes, reload),
    enrolments: new Enrolments(world, stored, boxes),
  };
}
