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

/** The shard whose schema contains the registry of all shards. */
export const REGISTRY_SHARD = 0;

export function schemaOf(shard: number): string {
  return `shard_${shard}`;
}

/** Returns the name of the database sessions of a member. Other members end these sessions once the member is gone. */
export function applicationOf({ member }: StoreShard): string {
  return `paybox ${member}`;
}

/** Tables that one shard has for all. They are empty in every other shard. */
export const REGISTRY_TABLES: ReadonlySet<string> = new Set([
  ...['partners', 'accounts', 'boxes', 'sources', 'audit', 'admin_tokens', 'box_secrets', 'enrolment_requests'],
]);
/** Each shard has its own settings, and some settings are shared. */
export const SHARED_SETTINGS: ReadonlySet<string> = new Set(['settings']);

/** Makes queries of any shard find these tables in the schema of the registry. */
export class TablesOfAll implements KyselyPlugin {
  readonly #transformer: Transformer;

  constructor(tables: ReadonlySet<string>) {
    this.#transformer = new Transformer(tables);
  }

  transformQuery({ node, queryId }: PluginTransformQueryArgs): RootOperationNode {
    return this.#transformer.transformNode(node, queryId);
  }

  async transformResult({ result }: PluginTransformResultArgs): Promise<QueryResult<UnknownRow>> {
    return result;
  }
}

class Transformer extends OperationNodeTransformer {
  readonly #tables: ReadonlySet<string>;

  constructor(tables: ReadonlySet<string>) {
    super();
    this.#tables = tables;
  }

  protected override transformSchemableIdentifier(
    node: SchemableIdentifierNode,
    queryId: QueryId,
  ): SchemableIdentifierNode {
    const { schema, identifier } = super.transformSchemableIdentifier(node, queryId);
    if (schema !== undefined || !this.#tables.has(identifier.name)) return node;
    return SchemableIdentifierNode.createWithSchema(schemaOf(REGISTRY_SHARD), identifier.name);
  }
}
