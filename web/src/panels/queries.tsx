// Queries: a list to choose from, with how each of them goes, and the cards of those that are chosen.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { app, type Chosen } from '../app';
import { toggle } from '../choosing';
import { countsOf, courses } from '../courses';
import { recording } from '../data/recorded';
import { selectOf } from '../data/statement';
import { useStore } from '../data/store';
import { sayDuration, sayNumber } from '../data/times';
import type { QueryState } from '../data/types';
import { isFoundBy, sayKindOf } from '../kinds';
import { hasJustChosen } from '../liveliest';
import { Letter, Notice } from '../parts/small';
import { Sparkline } from '../parts/sparkline';
import { ChosenCard } from './card';

const MOST_SHOWN = 200;
const MINUTE_S = 58; // as long as this is a minute, to whoever reads it

/** Who came and who left in the last minute; of groups how many new values were told. */
function Lately({ query }: { query: QueryState }): JSX.Element | null {
    const over_s = useStore(app, (one) => one.page?.streams.find((each) => each.name === query.stream)?.came_over_s);
    const [came, left] = [query.came ?? 0, query.left ?? 0];
    if (came + left === 0 || !over_s) return null;
    const when = over_s >= MINUTE_S ? 'in the last minute' : `in the last ${sayDuration(over_s * 1000)}`;
    if (query.kind === 'aggregate')
        return (
            <span class="lately" title={`new values ${when}`}>
                {sayNumber(came)} new {came === 1 ? 'value' : 'values'}
            </span>
        );
    return (
        <span class="lately" title={`came in and left ${when}`}>
            <span class="plus" aria-label={`${came} came in,`}>
                +{sayNumber(came)}
            </span>{' '}
            <span class="minus" aria-label={`${left} left ${when}`}>
                −{sayNumber(left)}
            </span>
        </span>
    );
}

/** How many were in over the last hour; nothing of a query of which that is not known. */
function Hour({ name }: { name: string }): JSX.Element | null {
    const counts = countsOf(
        useStore(courses, (one) => one),
        name,
    );
    return counts === null ? null : <Sparkline counts={counts} />;
}

function QueryRow({ query, chosen }: { query: QueryState; chosen: Chosen | undefined }): JSX.Element {
    const isNow = useStore(app, (one) => one.at_ms === null) || recording !== null;
    const isWell = query.state === 'registered';
    const count = chosen !== undefined ? chosen.members.length : isNow ? query.members : null;
    const press = (): void => {
        if (chosen === undefined || !hasJustChosen()) toggle(query.name);
    };
    return (
        <li>
            <button class="query" aria-pressed={chosen !== undefined} onClick={press} title={selectOf(query.text)}>
                {chosen === undefined ? (
                    <span class="letter none" aria-hidden="true" />
                ) : (
                    <Letter colour={chosen.colour} />
                )}
                <span class="about">
                    <span class="name">{query.name}</span>
                    <span class="kind">
                        {sayKindOf(query)} {isNow ? <Lately query={query} /> : null}
                    </span>
                </span>
                {isNow ? <Hour name={query.name} /> : null}
                <span class="count" aria-label={count === null ? 'members unknown' : `${count} in`}>
                    {sayNumber(count)}
                </span>
            </button>
            {isWell ? null : (
                <p class="notice error">
                    {query.state}
                    {query.why === null ? '' : `: ${query.why}`}
                </p>
            )}
        </li>
    );
}

function Search({
    text,
    onSearch,
    count,
}: {
    text: string;
    onSearch: (text: string) => void;
    count: number;
}): JSX.Element {
    return (
        <input
            type="search"
            class="search"
            placeholder={`Find among ${count} queries`}
            aria-label="Find a query"
            value={text}
            onInput={(event) => onSearch(event.currentTarget.value)}
        />
    );
}

/** Those of the queries whose name or kind has a text in it. */
function QueryList({ queries, chosen, text }: { queries: QueryState[]; chosen: Chosen[]; text: string }): JSX.Element {
    const matching = queries.filter((one) => isFoundBy(one, text));
    return (
        <>
            <ul class="list" aria-label="Queries">
                {matching.slice(0, MOST_SHOWN).map((query) => (
                    <QueryRow key={query.name} query={query} chosen={chosen.find((one) => one.name === query.name)} />
                ))}
            </ul>
            {matching.length === 0 ? <Notice>No query has {JSON.stringify(text)} in its name or kind.</Notice> : null}
            {matching.length > MOST_SHOWN ? (
                <p class="quiet">and {sayNumber(matching.length - MOST_SHOWN)} more: search by name</p>
            ) : null}
        </>
    );
}

function NoQuery(): JSX.Element {
    return (
        <Notice>
            There is no query yet.{' '}
            <button class="link" onClick={() => app.set({ tab: 'ask' })}>
                Draw the first one
            </button>{' '}
            on the map.
        </Notice>
    );
}

export function Queries(): JSX.Element {
    const [text, setText] = useState('');
    const queries = useStore(app, (one) => one.page?.queries);
    const chosen = useStore(app, (one) => one.chosen);
    if (queries === undefined) return <Notice kind="loading">Asking the server for its queries …</Notice>;
    if (queries.length === 0) return <NoQuery />;
    return (
        <div class="queries">
            {chosen.map((one) => (
                <ChosenCard key={one.name} one={one} />
            ))}
            {queries.length > 8 ? <Search text={text} onSearch={setText} count={queries.length} /> : null}
            {chosen.length === 0 ? (
                <p class="quiet">
                    Choose a query: its members get its colour on the map, and you see who comes and goes.
                </p>
            ) : null}
            <QueryList queries={queries} chosen={chosen} text={text} />
        </div>
    );
}
