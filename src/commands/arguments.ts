import { InvalidArgumentError } from 'commander';

/** A whole number from 1 to `max`. Throws InvalidArgumentError, as all here. */
export function whole(max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d{1,9}$/.test(text) && value >= 1 && value <= max) return value;
    throw new InvalidArgumentError(`expected a whole number from 1 to ${max}`);
  };
}

/** A TCP port. */
export function port(text: string): number {
  const value = Number(text);
  if (/^\d{1,5}$/.test(text) && value >= 1 && value <= 65_535) return value;
  throw new InvalidArgumentError('a port is a whole number from 1 to 65535');
}

/** A TCP port, or 0 for a free one. */
export function portOrAny(text: string): number {
  return text === '0' ? 0 : port(text);
}

/** An amount of money. */
export function dong(text: string): number {
  const value = Number(text);
  if (/^\d{1,13}$/.test(text) && value >= 1) return value;
  throw new InvalidArgumentError('an amount is whole đồng, digits only, from 1 to 9999999999999');
}
