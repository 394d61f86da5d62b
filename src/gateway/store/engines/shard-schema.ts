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
export const REGISTRY_TABLES: ReadonlySet<string> = new Set([
  ...['partners', 'accounts', 'boxes', 'sources', 'audit', 'admin_tokens', 'box_secrets', 'enrolment_requests'],
]);
/** Each shard has settings of its own, and there are some of all. */
export const SHARED_SETTINGS: ReadonlySet<string> = new Set(['settings']);

/** Has queries of any shard find these tables where the registry is. */
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
