/** Clauses, or rooms of them as `THR`, that nobody judges, and why. */
export interface NotJudged {
  clauses: readonly string[];
  why: string;
}

/** What the checks of a target leave out, as far as it was asked for. */
export function selectNotJudged(all: readonly NotJudged[], isWanted: (clause: string) => boolean): NotJudged[] {
  return all
    .map(({ clauses, why }) => ({ clauses: clauses.filter(isWanted), why }))
    .filter(({ clauses }) => clauses.length > 0);
}

/** What a run leaves out whomever it judges. */
export const THREATS: NotJudged = {
  clauses: ['THR'],
  why: 'who could want what: the clauses that they name stand against it',
};
