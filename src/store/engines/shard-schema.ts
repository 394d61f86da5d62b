import {
  type KyselyPlugin,
  OperationNodeTransformer,
  type PluginTransformQueryArgs,
  type PluginTransformResultArgs,
  type QueryId,
  type QueryResult,
  type RootOperationNode,
  SchemableIdentifierNode,
  type UnknownRow,
} from 'kysely';
import type { StoreShard } from '../store-files.ts';

/** The shard whose schema has the registry of all. */
export const REGISTRY_SHARD = 0;

export function schemaOf(shard: number): string {
  return `shard_${shard}`;
}

/** Name of the database sessions of a member; other members end them once it is gone. */
export function applicationOf({ member }: StoreShard): string {
  return `paybox ${member}`;
}

/** Tables that one shard has for all; every other shard has them empty. */
const SHARED_TABLES = new Set([
  ...['partners', 'accounts', 'boxes', 'sources', 'audit'],
  ...['settings', 'box_secrets', 'enrolment_requests'],
]);

/** Has queries of any shard find the tables of the registry. */
export class RegistryOfCluster implements KyselyPlugin {
  readonly #transformer = new SharedTables();

  transformQuery({ node, queryId }: PluginTransformQueryArgs): RootOperationNode {
    return this.#transformer.transformNode(node, queryId);
  }

  async transformResult({ result }: PluginTransformResultArgs): Promise<QueryResult<UnknownRow>> {
    return result;
  }
}

class SharedTables extends OperationNodeTransformer {
  protected override transformSchemableIdentifier(
    node: SchemableIdentifierNode,
    queryId: QueryId,
  ): SchemableIdentifierNode {
    const { schema, identifier } = super.transformSchemableIdentifier(node, queryId);
    if (schema !== undefined || !SHARED_TABLES.has(identifier.name)) return node;
    return SchemableIdentifierNode.createWithSchema(schemaOf(REGISTRY_SHARD), identifier.name);
  }
}
