import { el, notice, pill, stack } from './elements.js';
import { openForm } from './registry-forms.js';

const at = (iso) => (iso === null ? '–' : new Date(iso).toLocaleString('en-GB'));
const KIND = { admin: 'bad', cashier: 'good', viewer: 'live', support: 'live' };

/** The list of tokens, in the form of the lists in `registry.js`. */
export const TOKENS = {
  one: 'token',
  about:
    'Everybody who works here has a token of his own: an admin may do everything, a cashier sells, cancels and lists the sales of a day, a viewer and support read. A revoked token is refused at once.',
  columns: [
    ['Name', ''],
    ['Role', ''],
    ['Boxes', 'mono'],
    ['Made', 'time'],
    ['Last used', 'time'],
    ['', 'acts'],
  ],
  cells: (it) => [
    it.name,
    pill(it.role, KIND[it.role] ?? ''),
    it.role === 'cashier' ? (it.boxes?.join(' ') ?? 'all') : '–',
    stack(at(it.createdAt), `by ${it.createdBy}`),
    at(it.lastUsedAt),
  ],
};

/** The form of a new token. */
export const NEW_TOKEN = {
  inputs: [
    { path: 'name', label: 'Name, of the person or program that has it', example: 'till-1', required: true },
    { path: 'role', label: 'Role', choices: ['cashier', 'viewer', 'support', 'admin'] },
    {
      path: 'boxes',
      label: 'His boxes; empty: all',
      example: 'VVB000001 VVB000002',
      of: ['cashier'],
      pattern: '\\s*(VVB[0-9]{6}[\\s,]*)*',
    },
  ],
  body: ({ name, role, boxes = '' }) => {
    const codes = boxes.split(/[\s,]+/).filter(Boolean);
    return { name, role, ...(codes.length > 0 && { boxes: codes }) };
  },
};

/** Makes the button that revokes a token. `remove` sends the request, and `refresh` draws the list again. */
export function revokeButton({ name }, remove, refresh) {
  const open = () =>
    openForm(
      { title: `Revoke: ${name}`, about: 'Everybody who uses it is logged out at once.', submit: 'Revoke' },
      async () => {
        const answer = await remove(`tokens/${encodeURIComponent(name)}`);
        notice(`${name}: revoked`);
        refresh();
        return answer;
      },
    );
  return el('button', { type: 'button', onclick: open }, 'Revoke');
}
