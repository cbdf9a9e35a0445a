// The newest changes of a query that is chosen: who came, who left, and what the number that a change has says.
import type { JSX } from 'preact';
import { app, type Chosen } from '../app';
import { recording } from '../data/recorded';
import { useStore } from '../data/store';
import { SECOND_MS, sayDuration, sayInstant, sayNumber, sayTime, zoneShown } from '../data/times';
import type { Change, Member, QueryState } from '../data/types';

const MOST_CHANGES = 12;
const SIGNS: Record<number, string> = { 1: '+', 0: '0', [-1]: '−' };
const OF_GROUPS = ['aggregate', 'rows of a query'];

export const whoOf = (one: Pick<Member, 'object' | 'partner'>): string =>
    one.partner === null ? one.object : `${one.object} · ${one.partner}`;

/** The value of a change in words: it is another thing in each kind of query (docs/data-contracts.md). */
export function sayValueOf(change: Change, kind: string): string {
    const value = change.value ?? null;
    if (value === null) return '';
    if (OF_GROUPS.includes(kind)) return sayNumber(value);
    if (kind === 'fence') return `${change.sign < 0 ? 'was in for' : 'in for'} ${sayDuration(value * SECOND_MS)}`;
    if (kind === 'incident') return `for ${sayDuration(value * SECOND_MS)}`;
    return `stays in until ${sayInstant(value * SECOND_MS)}`; // by its velocity: `valid_until` of a query
}

function ChangeLine({ change, query }: { change: Change; query: QueryState | undefined }): JSX.Element {
    const look = (): void => app.set({ object: { stream: change.stream, name: change.object } });
    return (
        <li class={`change ${change.sign > 0 ? 'plus' : change.sign < 0 ? 'minus' : 'zero'}`}>
            <b aria-label={change.sign > 0 ? 'came in' : change.sign < 0 ? 'left' : 'told'}>{SIGNS[change.sign]}</b>
            {query?.kind === 'aggregate' ? (
                <span>{change.object || 'all'}</span>
            ) : (
                <button class="link" onClick={look}>
                    {whoOf(change)}
                </button>
            )}
            <span class="quiet">
                {change.cause} {query === undefined ? '' : sayValueOf(change, query.kind)}
            </span>
            <time class="quiet" dateTime={change.event_ts} title={sayInstant(Date.parse(change.event_ts))}>
                {sayTime(Date.parse(change.event_ts))}
            </time>
        </li>
    );
}

export function Changes({ one, query }: { one: Chosen; query: QueryState | undefined }): JSX.Element | null {
    const at_ms = useStore(app, (state) => state.at_ms);
    // Of the past those that were known then: what came since is left out, also while the server is asked.
    const isPast = (change: Change): boolean => at_ms === null || Date.parse(change.event_ts) <= at_ms;
    const told = at_ms === null || recording !== null ? one.changes : (one.before?.rows ?? []);
    const changes = told.filter(isPast);
    if (changes.length === 0) return null;
    return (
        <>
            <p class="quiet">Newest changes, times in {zoneShown()}</p>
            <ol class="changes" aria-label="Newest changes">
                {changes.slice(0, MOST_CHANGES).map((change) => (
                    <ChangeLine key={change.id} change={change} query={query} />
                ))}
            </ol>
        </>
    );
}
