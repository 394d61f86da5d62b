/** Reaches the session of a box at any gateway of a cluster. */
export interface BoxReach {
  /** Makes a box say hello again and so receive its changes. */
  renew(terminalCode: string, reason: string): Promise<void>;
  /** Ends the session of a box and its connections. The box then removes its QR. */
  expel(terminalCode: string, reason: string, disabled?: boolean): Promise<void>;
}
