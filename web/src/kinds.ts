// What each kind of query asks, in a few words: the same ones in the list of queries, on the Server tab and on Ask.
import type { QueryState } from './data/types';
import { selectOf } from './data/statement';

const KIND_WORDS: Record<string, string> = {
    range: 'who is inside',
    filter: 'who meets a condition',
    knn: 'nearest',
    fence: 'geofence',
    join: 'join with a map layer',
    window: 'in a sliding window',
    aggregate: 'count or average',
    pairs: 'pairs close together',
    incident: 'incident',
    'rows of a query': 'from the rows of a query',
};

/** What a kind asks; a kind that is not known here is named as the server does. */
export const sayKind = (kind: string): string => KIND_WORDS[kind] ?? kind;

const WINDOW = /\bWINDOW\s+(\d+(?:\.\d+)?)\s*([a-z]+)\b/i;
const FIGURE = /^\s*SELECT\b.*?\b(COUNT|AVG|SUM|MIN|MAX)\s*\(/is;
const FIGURES: Record<string, string> = { COUNT: 'count', AVG: 'average', SUM: 'sum', MIN: 'least', MAX: 'greatest' };

/** What a query asks, with the length of its window or the name of its figure where its statement says it. */
export function sayKindOf({ kind, text }: Pick<QueryState, 'kind' | 'text'>): string {
    const select = selectOf(text);
    const window = kind === 'window' ? WINDOW.exec(select) : null;
    if (window !== null) return `in the last ${window[1]} ${window[2]!.toLowerCase()}`;
    const figure = kind === 'aggregate' ? FIGURE.exec(select) : null;
    return figure === null ? sayKind(kind) : FIGURES[figure[1]!.toUpperCase()]!;
}

/** Whether a query has a text in its name or its kind: in the words of the page, or in those of the server. */
export function isFoundBy(query: QueryState, text: string): boolean {
    const wanted = text.trim().toLowerCase();
    const said = [query.name, query.kind, sayKind(query.kind), sayKindOf(query)];
    return said.some((one) => one.toLowerCase().includes(wanted));
}
