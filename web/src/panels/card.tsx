// One query that is chosen: statement, figures, who is in, what changed, and what can be done with it.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { app, type Chosen } from '../app';
import { startFrom } from '../asking';
import { drop, forgetNews, lookAt } from '../choosing';
import { getJson, pathOf, wordsOf } from '../data/api';
import { recording } from '../data/recorded';
import { selectOf } from '../data/statement';
import { useStore } from '../data/store';
import { sayInstant, sayNumber } from '../data/times';
import type { QueryState } from '../data/types';
import { QUERY_COLOURS } from '../map/colours';
import { Chart } from '../parts/chart';
import { Letter, Notice } from '../parts/small';
import { Changes, whoOf } from './changes';
import { More } from './more';

const MOST_MEMBERS = 40;

function Groups({ one }: { one: Chosen }): JSX.Element {
    const rows = [...one.members].sort((a, b) => Number(b.value ?? 0) - Number(a.value ?? 0)).slice(0, MOST_MEMBERS);
    return (
        <table class="groups">
            <caption>
                Groups and their values (− the old one, + the new one). They are no objects: nobody is marked on the map
            </caption>
            <tbody>
                {rows.map((row) => (
                    <tr key={row.object}>
                        <th scope="row">{row.object || 'all'}</th>
                        <td>{sayNumber(Number(row.value ?? Number.NaN))}</td>
                    </tr>
                ))}
            </tbody>
        </table>
    );
}

function Members({ one, query }: { one: Chosen; query: QueryState | undefined }): JSX.Element {
    const at_ms = useStore(app, (state) => state.at_ms);
    if (one.refused !== '') return <Notice kind="error">{one.refused}</Notice>;
    if (!one.isAnswered) return <Notice kind="loading">Asking who is in …</Notice>;
    if (one.members.length === 0 && recording !== null) return <Notice>Nobody was in.</Notice>;
    if (one.members.length === 0 && at_ms !== null) return <Notice>Nobody was in at {sayInstant(at_ms)}.</Notice>;
    if (one.members.length === 0) return <Notice>Nobody is in now. Who comes in appears here at once.</Notice>;
    if (query?.kind === 'aggregate') return <Groups one={one} />;
    const open = (object: string): void => app.set({ object: { stream: query?.stream ?? '', name: object } });
    return (
        <ul class="members" aria-label={`Who is in ${one.name}`}>
            {one.members.slice(0, MOST_MEMBERS).map((row) => (
                <li key={whoOf(row)}>
                    <button class="link" onClick={() => open(row.object)}>
                        {whoOf(row)}
                    </button>
                </li>
            ))}
            {one.members.length > MOST_MEMBERS ? (
                <li class="quiet">and {sayNumber(one.members.length - MOST_MEMBERS)} more</li>
            ) : null}
            {recording === null ? null : (
                <li class="quiet">The report explains the first {recording.explained} who are in at its end.</li>
            )}
        </ul>
    );
}

function FollowState({ one }: { one: Chosen }): JSX.Element | null {
    if (one.state === 'lost')
        return <Notice kind="error">Changes: {one.words}. None is lost: it goes on behind the last one.</Notice>;
    if (one.state === 'refused') return <Notice kind="error">{one.words}</Notice>;
    return null;
}

/** How many were in, over the time that somebody looks. */
function Counts({ one, isGroup }: { one: Chosen; isGroup: boolean }): JSX.Element | null {
    const theme = useStore(app, (state) => state.theme);
    const isNow = useStore(app, (state) => state.at_ms) === null || recording !== null;
    const [times, values] = one.series;
    if (!isNow) return null; // it is of what came since
    if (!(times.at(-1)! - times[0]! >= 1)) return null;
    const line = { label: one.name, colour: QUERY_COLOURS[theme][one.colour]!, values };
    return (
        <Chart
            times={times}
            lines={[line]}
            about={`How many ${isGroup ? 'groups ' : ''}were in ${one.name}: now ${one.members.length}`}
        />
    );
}

/** What has just become of a query: whoever registered it is led here, and reads it once. */
function News({ one }: { one: Chosen }): JSX.Element {
    const ref = useRef<HTMLDivElement>(null);
    useEffect(() => {
        ref.current!.focus();
        return () => forgetNews(one.name);
    }, []);
    return (
        <div ref={ref} tabIndex={-1}>
            <Notice kind="good">{one.news}</Notice>
        </div>
    );
}

/** What came and left, while somebody looks, or in the hour before a moment of the past. */
function CameAndLeft({ one }: { one: Chosen }): JSX.Element {
    const at_ms = useStore(app, (state) => state.at_ms);
    const isNow = at_ms === null || recording !== null;
    const isKnown = one.before !== null && at_ms !== null && Date.parse(one.before.to) <= at_ms;
    const counted = isNow ? one : isKnown ? one.before : null;
    const since = recording !== null ? 'in all of the report' : isNow ? 'since you opened it' : 'in the hour before';
    return (
        <>
            <span class="plus">+{sayNumber(counted?.entered)}</span>{' '}
            <span class="minus">−{sayNumber(counted?.left)}</span> {since}
        </>
    );
}

function CardFigures({ one, isGroup }: { one: Chosen; isGroup: boolean }): JSX.Element {
    return (
        <p class="figures">
            <b>{one.isAnswered ? sayNumber(one.members.length) : '–'}</b> {isGroup ? 'groups' : 'in'} ·{' '}
            <CameAndLeft one={one} />
        </p>
    );
}

function CardActions({ one, query }: { one: Chosen; query: QueryState | undefined }): JSX.Element {
    return (
        <p class="actions">
            <button onClick={() => lookAt(one)}>Show on the map</button>
            {query === undefined || recording !== null ? null : (
                <button onClick={() => startFrom(one.name, query.stream, selectOf(query.text))}>
                    Try another version
                </button>
            )}
        </p>
    );
}

/** What a query costs: it is run over the archived fixes, and what goes through its operators is counted. */
function Cost({ query }: { query: string }): JSX.Element {
    const [said, setSaid] = useState<string | null>(null);
    const ask = async (): Promise<void> => {
        setSaid('Counting …');
        try {
            const path = pathOf(['v1', 'explain', query], { analyze: 'true' });
            const { lines } = await getJson<{ lines: string[] }>(path);
            setSaid(lines.slice(1).join('\n').trim());
        } catch (error) {
            setSaid(wordsOf(error));
        }
    };
    if (said === null) return <button onClick={() => void ask()}>What it costs</button>;
    return (
        <pre class="statement" role="status" aria-label={`What ${query} costs`}>
            {said}
        </pre>
    );
}

/** One query that is chosen: statement, figures, who is in, what changed. */
export function ChosenCard({ one }: { one: Chosen }): JSX.Element {
    const query = useStore(app, (state) => state.page?.queries.find((each) => each.name === one.name));
    const isGroup = query?.kind === 'aggregate';
    return (
        <section class="card" aria-label={`Query ${one.name}`}>
            <header>
                <Letter colour={one.colour} />
                <h3>{one.name}</h3>
                <button class="plain" onClick={() => drop(one.name)} aria-label={`Let ${one.name} go`}>
                    ✕
                </button>
            </header>
            {query === undefined ? null : <pre class="statement">{selectOf(query.text)}</pre>}
            {one.news === '' ? null : <News one={one} />}
            <FollowState one={one} />
            <CardFigures one={one} isGroup={isGroup} />
            <Counts one={one} isGroup={isGroup} />
            <Members one={one} query={query} />
            <Changes one={one} query={query} />
            {recording === null && query !== undefined ? <Cost query={one.name} /> : null}
            <CardActions one={one} query={query} />
            {recording === null && query !== undefined ? <More query={query} /> : null}
        </section>
    );
}
