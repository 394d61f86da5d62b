/** How a store is shared with other gateways. */
export interface StoreSharing {
  /** The name under which this gateway chains its payments. */
  name: string;
  /** The run whose row in `cluster.gateways` must exist for each write. */
  run: string;
  /** Differs for each restored backup, so that older marks do not count. '' for a database that was never restored. */
  generation: string;
  /** The name of its database sessions. Others end them before they take over. */
  application: string;
}
