type Schema = Record<string, unknown>;

const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Keywords that say nothing about whether a value is valid. */
const ANNOTATIONS = ['description', 'default', 'format', '$ref'];
/** The bounds of whole numbers in JavaScript, which zod writes into its schemas. */
const CHECKS: Record<string, (value: unknown, wanted: unknown, at: Place) => string[]> = {
  type: (value, wanted) => (typeOf(value, wanted) ? [] : [`is no ${wanted}`]),
  const: (value, wanted) => (value === wanted ? [] : [`is not ${wanted}`]),
  enum: (value, wanted) => (Array.isArray(wanted) && wanted.includes(value) ? [] : [`is none of ${wanted}`]),
  minimum: (value, wanted) => (typeof value !== 'number' || value >= Number(wanted) ? [] : ['is too small']),
  maximum: (value, wanted) => (typeof value !== 'number' || value <= Number(wanted) ? [] : ['is too large']),
  maxLength: (value, wanted) =>
    typeof value !== 'string' || [...value].length <= Number(wanted) ? [] : ['is too long'],
  minLength: (value, wanted) =>
    typeof value !== 'string' || [...value].length >= Number(wanted) ? [] : ['is too short'],
  pattern: (value, wanted) =>
    typeof value !== 'string' || new RegExp(String(wanted), 'u').test(value) ? [] : [`does not fit ${wanted}`],
  maxItems: (value, wanted) => (!Array.isArray(value) || value.length <= Number(wanted) ? [] : ['has too many']),
  minItems: (value, wanted) => (!Array.isArray(value) || value.length >= Number(wanted) ? [] : ['has too few']),
  required: (value, wanted) =>
    isSchema(value) && Array.isArray(wanted)
      ? wanted.filter((key) => !Object.hasOwn(value, key)).map((key) => `has no ${key}`)
      : [],
  properties: (value, wanted, at) =>
    isSchema(value) && isSchema(wanted)
      ? Object.entries(wanted).flatMap(([key, its]) =>
          Object.hasOwn(value, key) ? within(at, key).problems(its, value[key]) : [],
        )
      : [],
  additionalProperties: (value, wanted, at) => {
    if (!isSchema(value)) return [];
    const own = isSchema(at.schema.properties) ? at.schema.properties : {};
    const others = Object.keys(value).filter((key) => !Object.hasOwn(own, key));
    return others.flatMap((key) => (wanted === false ? [`has ${key}`] : within(at, key).problems(wanted, value[key])));
  },
  anyOf: (value, wanted, at) => {
    const options = Array.isArray(wanted) ? wanted : [];
    return options.some((it) => within(at, '').problems(it, value).length === 0) ? [] : ['fits no alternative'];
  },
  oneOf: (value, wanted, at) => {
    const options = Array.isArray(wanted) ? wanted : [];
    return options.filter((it) => within(at, '').problems(it, value).length === 0).length === 1
      ? []
      : ['fits no alternative, or several'];
  },
  propertyNames: (value, wanted, at) =>
    isSchema(value) ? Object.keys(value).flatMap((key) => within(at, key).problems(wanted, key)) : [],
  items: (value, wanted, at) =>
    Array.isArray(value) ? value.flatMap((it, index) => within(at, String(index)).problems(wanted, it)) : [],
};

interface Place {
  document: unknown;
  path: string;
  schema: Schema;
}

/**
 * What is wrong with a value by a JSON schema of 2020-12, read without the library that wrote it. References go into
 * `document`. Throws for a keyword that it does not know: a schema that is not understood proves nothing.
 */
export function schemaProblems(document: unknown, schema: unknown, value: unknown): string[] {
  return within({ document, path: '', schema: {} }, 'body').problems(schema, value);
}

function within({ document, path }: Place, key: string) {
  const here = path === '' ? key : `${path}.${key}`;
  return {
    problems(given: unknown, value: unknown): string[] {
      if (!isSchema(given)) throw new Error(`${here}: not a schema`);
      const schema = typeof given.$ref === 'string' ? resolveRef(document, given.$ref) : given;
      return Object.entries(schema).flatMap(([keyword, wanted]) => {
        if (ANNOTATIONS.includes(keyword)) return [];
        const check = CHECKS[keyword];
        if (check === undefined) throw new Error(`${here}: unknown keyword ${keyword}`);
        const found = check(value, wanted, { document, path: here, schema });
        return found.map((problem) => (problem.startsWith('body') ? problem : `${here} ${problem}`));
      });
    },
  };
}

/** What a local reference points at. Throws when it points at nothing. */
export function resolveRef(document: unknown, ref: string): Schema {
  if (!ref.startsWith('#/')) throw new Error(`not a local reference: ${ref}`);
  const found = ref
    .slice(2)
    .split('/')
    .reduce<unknown>((value, key) => (isSchema(value) && Object.hasOwn(value, key) ? value[key] : undefined), document);
  if (!isSchema(found)) throw new Error(`a reference to nothing: ${ref}`);
  return found;
}

function typeOf(value: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted)) return wanted.some((it) => typeOf(value, it));
  if (wanted === 'object') return isSchema(value);
  if (wanted === 'array') return Array.isArray(value);
  if (wanted === 'null') return value === null;
  if (wanted === 'integer') return Number.isInteger(value);
  return typeof value === wanted;
}
