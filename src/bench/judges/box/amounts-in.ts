/**
 * Returns the amounts in a text: numbers with a đồng sign, or all numbers where none has one. `500.000` is not
 * `50.000`.
 */
export function amountsIn(text: string): number[] {
  const numbers = [
    ...text.matchAll(/(?<![\p{L}\d.,])(\d{1,3}(?:[.,\u00a0 ]\d{3})+|\d+)(?![\p{L}\d]|[.,]\d)(\s?(?:₫|đ|VND))?/giu),
  ];
  const priced = numbers.filter(([, , sign]) => sign !== undefined);
  return (priced.length > 0 ? priced : numbers).map(([, digits = '']) => Number(digits.replaceAll(/\D/g, '')));
}
