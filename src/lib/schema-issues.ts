import type { z } from 'zod';

const KEYS_SHOWN_MAX = 8;

/** A problem that a schema found, in words for a person. */
export function expectedBy(issue: z.core.$ZodIssue): string {
  if (issue.code === 'unrecognized_keys') {
    const more = issue.keys.length - KEYS_SHOWN_MAX;
    return `unknown key ${issue.keys.slice(0, KEYS_SHOWN_MAX).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  }
  if (issue.code === 'custom') return issue.message;
  const text = issue.message
    .replace(/^(Invalid input|Invalid option|Too small|Too big|Invalid string): /, '')
    .replace(/^Invalid discriminator value\. Expected /, 'expected one of ')
    .replace(/, received undefined$/, ', but it is missing');
  return text.startsWith('expected') ? text : `expected ${text}`;
}
