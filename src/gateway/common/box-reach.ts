/** Reaches the session of a box, at whatever gateway of a cluster it is. */
export interface BoxReach {
  /** Has a box say hello again, and so learn what has changed for it. */
  renew(terminalCode: string, reason: string): Promise<void>;
  /** Ends the session of a box and its connections, which takes its QR away. */
  expel(terminalCode: string, reason: string, disabled?: boolean): Promise<void>;
}
