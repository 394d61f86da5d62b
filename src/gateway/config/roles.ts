/**
 * The rights that the gateway's own routes require. `look`: read everything but secrets. `list-sales`: list the sales
 * of a day. `sell`: sell, and cancel a sale. `administer`: everything else.
 */
export type Right = 'look' | 'list-sales' | 'sell' | 'administer';

/** The rights of each role. A new role is one line here. */
export const ROLES = {
  admin: ['look', 'list-sales', 'sell', 'administer'],
  cashier: ['list-sales', 'sell'],
  viewer: ['look', 'list-sales'],
  support: ['look', 'list-sales'],
} as const satisfies Record<string, readonly Right[]>;

export type Role = keyof typeof ROLES;

export const ROLE_NAMES = Object.keys(ROLES) as [Role, ...Role[]];

/** Returns whether a role has a right. */
export function mayDo(role: Role, right: Right): boolean {
  return (ROLES[role] as readonly Right[]).includes(right);
}

/** Returns the names of the roles that have a right. */
export function rolesWith(right: Right): Role[] {
  return ROLE_NAMES.filter((role) => mayDo(role, right));
}
