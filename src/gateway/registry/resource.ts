/*
 * The shape of the registry's table: inputs of fields, fields of rows, kinds of rows. It has only types, and loads nothing.
 */

/** The types that fields may have. `bodies.ts` has the schema of each. */
export type FieldType =
  | 'bankAccount'
  | 'bankCode'
  | 'boxCode'
  | 'callback'
  | 'contentPrefix'
  | 'flag'
  | 'password'
  | 'sourceKey'
  | 'strongSecret'
  | 'text'
  | 'userBankName'
  | 'username';

/** A value that a person gives: one line of a form, or one option of `paybox admin`. */
export interface Input {
  /** Its label in a form, and in the help of the command line. */
  label: string;
  /** Stands in the empty line of a form. */
  example?: string;
  /** Says what happens without it. */
  leftOut?: string;
  required?: true;
  /** It is hidden in a form, the command line reads it from a file, and no answer has it. */
  secret?: true;
  /** It is an address. */
  url?: true;
  /** The option of the command line, as `--serial <code>`. */
  option?: string;
  /** The values that it may have. */
  choices?: readonly string[];
  /** Only for these kinds, which are the first word of the chosen proof. */
  of?: readonly string[];
  /** Other values that are given with this one, by their path in the body. */
  sets?: Readonly<Record<string, string>>;
  /** For each choice, other values by their path; `key` has the path of the input of this name. */
  bodies?: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** A field of a row: in bodies and answers, in the store, and in forms. */
export interface Field extends Input {
  type: FieldType;
  /** The head of its column in a list of `paybox admin`. */
  head?: string;
  /** Only new rows take it: later it is rotated, or it is the name of the row. */
  only?: 'new';
  /** Boxes of other makers have it, which only the gateway's file lists. */
  fileOnly?: true;
  /** No form asks for it. */
  noForm?: true;
  /** No two rows have the same value, so a change may be refused with NAME_TAKEN. */
  unique?: true;
  /** Lists search for its beginning by this parameter. */
  search?: string;
  /** The lines of a form for it, by their path in the body, if it is more than one text. It is given if the first of them is. */
  inputs?: Readonly<Record<string, Input>>;
  /** The option of the command line that takes it away. */
  none?: string;
}

/** A kind of rows. Texts that continue a sentence begin with a small letter. */
export interface Resource {
  /** One row, with its article. */
  one: string;
  about: string;
  /** Tells a person who changes rows what a change does. */
  hint: string;
  /** The first one is the name of a row. */
  fields: Readonly<Record<string, Field>>;
  /** The field that names the row to which a row is linked. */
  linkTo?: 'partner' | 'account';
  /** Columns of a list of `paybox admin` that are no fields: the head, and the name in answers. */
  status?: readonly (readonly [head: string, name: string])[];
  rotate?: {
    /** Name the new secret, and say what happens then. */
    gives: string;
    effect: string;
    fields: Readonly<Record<string, Field>>;
    /** The secret in the answer, and when it has one if it does not always. */
    makes: 'password' | 'secret' | 'key';
    madeIf?: string;
  };
  /** The secret in the answer to a new row. */
  makes?: 'password';
  disabled: string;
}
