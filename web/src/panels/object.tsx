// One object: all that is known of it, its way, its visits, and why it is in an answer.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { app, place } from '../app';
import { choose, isChosen } from '../choosing';
import { getJson, pathOf, wordsOf } from '../data/api';
import { Newest } from '../data/newest';
import { recording } from '../data/recorded';
import { useStore } from '../data/store';
import { isoOf, msOf, sayDuration, sayInstant, sayNumber, withShownTimes } from '../data/times';
import type { Visit } from '../data/types';
import { askWay, wayOf } from '../data/way';
import type { Clicked } from '../map/view';
import { Facts, Notice } from '../parts/small';

interface Known {
    object: string;
    event_ts: string;
    x: number | null;
    y: number | null;
    gone: boolean;
    properties: Record<string, unknown>;
    answers: { query: string; since_ts: string | null; partner?: string | null }[];
    visits: (Visit & { query: string })[];
}

const AGAIN_MS = 3000;
const SETTLED_MS = 250; // while the slider is dragged nothing is asked
const WAY_MS = 15 * 60_000; // how much of its way is shown

interface Shown {
    known: Known | null;
    words: string; // what went wrong
    at_ms: number | null; // as of when it is
}

/** What is known of an object, now and then anew, or as of a moment; a report knows it as of its end. */
function useKnown(which: Clicked, at_ms: number | null): Shown {
    const at = at_ms === null || recording !== null ? null : isoOf(at_ms);
    const [state, setState] = useState<Shown>({ known: null, words: '', at_ms });
    const newest = useRef(new Newest());
    useEffect(() => {
        let isOver = false;
        const ask = async (): Promise<void> => {
            try {
                const known = await getJson<Known>(pathOf(['page', 'object', which.stream, which.name], { at }));
                // A replay may be a moment further by now: the card says as of when it is.
                if (!isOver || (at_ms !== null && isShown(which, at_ms))) setState({ known, words: '', at_ms });
            } catch (error) {
                // Of another moment nothing is shown that was not so then.
                const kept = (before: Shown): Known | null => (at === null ? before.known : null);
                if (!isOver) setState((before) => ({ known: kept(before), words: wordsOf(error), at_ms }));
            }
        };
        const askSoon = (): void => newest.current.ask(ask);
        const first = setTimeout(askSoon, at === null ? 0 : SETTLED_MS);
        const timer = at === null ? setInterval(askSoon, AGAIN_MS) : undefined;
        return () => {
            isOver = true;
            clearTimeout(first);
            clearInterval(timer);
        };
    }, [which.stream, which.name, at]);
    return state;
}

/** Whether an object is looked at, and as of a moment nothing before it: what is later is not shown. */
function isShown(which: Clicked, at_ms: number | null): boolean {
    const { object, at_ms: now_ms } = app.get();
    const isSame = object?.name === which.name && object.stream === which.stream;
    return isSame && (at_ms === null ? now_ms === null : now_ms !== null && at_ms <= now_ms);
}

/** The object's way up to the moment that is looked at. */
function useWay(which: Clicked, at_ms: number | null, seen: string | null): void {
    const newest = useRef(new Newest());
    useEffect(() => {
        const end_ms = at_ms ?? (seen === null ? Date.now() : msOf(seen));
        const last_ms = at_ms ?? end_ms + 1000;
        const ask = async (): Promise<void> => {
            const places = await askWay(which.stream, which.name, end_ms - WAY_MS, last_ms);
            if (isShown(which, at_ms)) place.view?.showStill('ways', wayOf(places));
        };
        newest.current.ask(() => ask().catch(() => undefined)); // the card says what is known, with or without a way
    }, [which.stream, which.name, at_ms, seen]);
    useEffect(() => () => place.view?.showStill('ways', wayOf([])), [which.stream, which.name]);
}

function Why({ query, which }: { query: string; which: Clicked }): JSX.Element {
    const at_ms = useStore(app, (one) => one.at_ms);
    const [words, setWords] = useState('');
    useEffect(() => setWords(''), [at_ms]);
    const at = at_ms === null ? null : isoOf(at_ms);
    const ask = async (): Promise<void> => {
        try {
            const why = await getJson<{ sentence: string }>(pathOf(['v1', 'why', query], { object: which.name, at }));
            setWords(why.sentence);
        } catch (error) {
            setWords(wordsOf(error));
        }
    };
    if (words === '')
        return (
            <button class="link" onClick={() => void ask()} aria-label={`Why is ${which.name} in ${query}?`}>
                why?
            </button>
        );
    return <p class="why">{withShownTimes(words)}</p>;
}

function Answers({ known, which }: { known: Known; which: Clicked }): JSX.Element {
    const at_ms = useStore(app, (one) => one.at_ms);
    if (known.answers.length === 0)
        return <Notice>{at_ms === null ? 'It is in no answer now.' : 'It was in no answer then.'}</Notice>;
    return (
        <ul class="answers" aria-label="Answers that it is in">
            {known.answers.map((one) => (
                <li key={`${one.query}/${one.partner}`}>
                    <button class="link" disabled={isChosen(one.query)} onClick={() => choose(one.query)}>
                        {one.query}
                    </button>
                    {one.partner == null ? null : <span> with {one.partner}</span>}
                    {one.since_ts === null ? null : (
                        <span class="quiet"> since {sayInstant(msOf(one.since_ts))}</span>
                    )}{' '}
                    <Why query={one.query} which={which} />
                </li>
            ))}
        </ul>
    );
}

function Visits({ visits }: { visits: Known['visits'] }): JSX.Element {
    if (visits.length === 0) return <Notice>No visit is known yet: queries that are registered count them.</Notice>;
    return (
        <ol class="visits" aria-label="Its last visits">
            {visits.slice(0, 20).map((one) => {
                const to = one.to_ts === null ? 'still in' : sayDuration(msOf(one.to_ts) - msOf(one.from_ts));
                return (
                    <li key={`${one.query}/${one.partner}/${one.from_ts}`}>
                        <span>
                            {one.query}
                            {one.partner === null ? '' : ` · ${one.partner}`}
                        </span>
                        <span class="quiet">{sayInstant(msOf(one.from_ts))}</span>
                        <b>{to}</b>
                    </li>
                );
            })}
        </ol>
    );
}

const sayValue = (value: unknown): string =>
    typeof value === 'number'
        ? Number.isInteger(value)
            ? String(value)
            : sayNumber(value)
        : value === null
          ? '–'
          : String(value);

function KnownParts({ known, which }: { known: Known; which: Clicked }): JSX.Element {
    const facts: [string, string][] = Object.entries(known.properties).map(([name, value]) => [name, sayValue(value)]);
    return (
        <>
            {known.gone ? <Notice>It is gone: it said so itself.</Notice> : null}
            <Facts
                facts={[
                    ...facts,
                    ['last fix', sayInstant(msOf(known.event_ts))],
                    ['x', String(known.x ?? '–')],
                    ['y', String(known.y ?? '–')],
                ]}
            />
            <h3>In answers</h3>
            <Answers known={known} which={which} />
            <h3>Visits</h3>
            <Visits visits={known.visits} />
        </>
    );
}

/** Marks the object on the map as long as its card is there. */
function useSelected(which: Clicked): void {
    useEffect(() => {
        if (place.view !== null) place.view.selected = which;
        place.view?.draw();
        return () => {
            if (place.view !== null) place.view.selected = null;
            place.view?.draw();
        };
    }, [which]);
}

/** As of when the card is, while the past is looked at. */
function AsOf({ at_ms }: { at_ms: number | null }): JSX.Element | null {
    if (at_ms === null) return null;
    if (recording === null) return <Notice>As of {sayInstant(at_ms)}, by what is archived.</Notice>;
    return <Notice>Its way ends at {sayInstant(at_ms)}. Everything below is as of the end of the report.</Notice>;
}

function CardBody({ which, known, words }: { which: Clicked; known: Known | null; words: string }): JSX.Element | null {
    if (known !== null) return <KnownParts known={known} which={which} />;
    return words === '' ? <Notice kind="loading">Asking what is known of it …</Notice> : null;
}

function ObjectCard({ which }: { which: Clicked }): JSX.Element {
    const at_ms = useStore(app, (one) => one.at_ms);
    const { known, words, at_ms: shown_ms } = useKnown(which, at_ms);
    useWay(which, at_ms, known?.event_ts ?? null);
    useSelected(which);
    const centre = (): void => {
        const at = place.view?.placeOf(which);
        if (at) place.view?.map.easeTo({ center: at, zoom: Math.max(15, place.view.map.getZoom()) });
    };
    return (
        <section class="object" aria-label={`Object ${which.name}`}>
            <header>
                <h2>{which.name}</h2>
                <button onClick={centre}>Show</button>
                <button class="plain" aria-label="Close" onClick={() => app.set({ object: null })}>
                    ✕
                </button>
            </header>
            <AsOf at_ms={recording === null ? shown_ms : at_ms} />
            {words === '' ? null : <Notice kind="error">{withShownTimes(words)}</Notice>}
            <CardBody which={which} known={known} words={words} />
        </section>
    );
}

export function ObjectPanel(): JSX.Element | null {
    const which = useStore(app, (one) => one.object);
    return which === null ? null : <ObjectCard key={`${which.stream}/${which.name}`} which={which} />;
}
