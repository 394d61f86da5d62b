import type { Context } from '../context.ts';
import { Registry, type RegistryDeps } from '../registry/registry.ts';
import { SourceRows, type SourceRowsDeps } from '../registry/source-rows.ts';
import { AdminTokens } from './admin-tokens.ts';
import { Authorizer } from './authorizer.ts';
import { Enrolments, type EnrolmentsDeps } from './enrolments.ts';
import type { Logins } from './logins.ts';
import { openRootToken, roleOnLoopback } from './root-token.ts';

type AccessDeps = Omit<RegistryDeps & SourceRowsDeps & EnrolmentsDeps, 'registry' | 'isOnline'> &
  Pick<Context, 'store' | 'config'> & { hub: { session(terminalCode: string): unknown }; logins: Logins };

/** Who may do something at a gateway: callers and their tokens, rows of the registry, and boxes that enrol. */
export interface Access {
  authorizer: Authorizer;
  adminTokens: AdminTokens;
  registry: Registry;
  sourceRows: SourceRows;
  enrolments: Enrolments;
}

/** Opens what decides who may do something. Throws ConfigError when the first token can be neither read nor made. */
export async function openAccess(deps: AccessDeps): Promise<Access> {
  const { store, hub, config, random, log, changes } = deps;
  const root = openRootToken(config, random, log);
  const authorizer = new Authorizer({ ...deps, root, onLoopback: roleOnLoopback(config), tokens: store.adminTokens });
  changes.watch((topic) => {
    if (topic === 'registry') void authorizer.changed();
  });
  const changing = { ...deps, registry: store.registry };
  return {
    authorizer,
    adminTokens: new AdminTokens(deps),
    registry: new Registry(changing),
    sourceRows: new SourceRows(changing),
    enrolments: await Enrolments.open({ ...deps, isOnline: (code) => hub.session(code) !== undefined }),
  };
}
