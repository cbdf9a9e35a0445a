// What is around the map: name and state above, panels beside it, time upon it; on a phone the map, panels, the legend.
import type { JSX, TargetedKeyboardEvent } from 'preact';
import { useState } from 'preact/hooks';
import { app, latest_ms, setClock, setTheme, type Tab } from './app';
import { keepToken } from './data/api';
import { addressOfPart, recording } from './data/recorded';
import { useStore } from './data/store';
import { ownZone, sayAgo, sayInstant, sayNumber, sayRate, saySpan, withShownTimes, type Clock } from './data/times';
import { Ask } from './panels/ask';
import { Behind } from './panels/behind';
import { FeaturePanel } from './panels/feature';
import { FindObject } from './panels/find';
import { ObjectPanel } from './panels/object';
import { Queries } from './panels/queries';
import { ServerSide } from './panels/server';
import { Coordinates } from './parts/coordinates';
import { Legend } from './parts/legend';
import { useIsNarrow } from './parts/small';
import { TimeBar } from './parts/timebar';
import { askState } from './session';

const ALL_TABS: [Tab, string][] = [
    ['queries', 'Queries'],
    ['ask', 'Ask'],
    ['server', 'Server'],
];
// A report answers no new questions.
const TABS = ALL_TABS.filter(([name]) => recording === null || name !== 'ask');
const ICON = addressOfPart('icon', 'image/svg+xml', '/page/files/icon.svg');
const OLD_MS = 60_000;

function Token(): JSX.Element {
    const [token, setToken] = useState('');
    const take = (event: Event): void => {
        event.preventDefault();
        keepToken(token);
        void askState().catch(() => undefined);
    };
    return (
        <form class="banner" onSubmit={take}>
            <label>
                This server asks for its token:{' '}
                <input
                    type="password"
                    autocomplete="off"
                    value={token}
                    onInput={(event) => setToken(event.currentTarget.value)}
                />
            </label>
            <button>Show it</button>
        </form>
    );
}

function Banner(): JSX.Element | null {
    const state = useStore(app, (one) => one.connection);
    const words = useStore(app, (one) => one.words);
    const seen_ms = useStore(app, (one) => one.seen_ms);
    if (state === 'token') return <Token />;
    if (state !== 'lost') return null;
    const since = seen_ms === null ? '' : ` What you see is as of ${sayInstant(seen_ms)}.`;
    return (
        <p class="banner" role="alert">
            Disconnected: {words}.{since} It is tried again all the time; is <code>fairway serve</code> running?
        </p>
    );
}

/** What is not on the map while the past is looked at. */
function UnknownPast(): JSX.Element | null {
    const at_ms = useStore(app, (one) => one.at_ms);
    const unknown = useStore(app, (one) => one.unknownPast);
    if (at_ms === null || unknown.length === 0) return null;
    return (
        <p class="banner" role="status">
            Not on the map at this moment: {withShownTimes(unknown.join('; '))}
        </p>
    );
}

/** What is moving now, in one line. */
function Summary(): JSX.Element {
    const page = useStore(app, (one) => one.page);
    const at_ms = useStore(app, (one) => one.at_ms);
    if (page === null) return <span class="summary">loading …</span>;
    const objects = page.streams.reduce((sum, one) => sum + (one.objects ?? 0), 0);
    const rate = page.streams.reduce((sum, one) => sum + (one.fixes_per_s ?? 0), 0);
    if (at_ms !== null)
        return (
            <span class="summary">
                <b class="pasttag">past</b> {sayInstant(at_ms)}
                {recording === null ? null : <> · report of {sayInstant(Date.parse(recording.made))}</>}
            </span>
        );
    if (recording !== null) return <Reported objects={objects} />;
    const newest = latest_ms();
    const now = Date.parse(page.now);
    return (
        <span class="summary">
            <b>{sayNumber(objects)}</b> objects ·{' '}
            {rate === 0 ? (
                'no fixes now'
            ) : (
                <>
                    fixes <b>{sayRate(rate)}</b>
                </>
            )}
            {newest !== null && now - newest > OLD_MS ? <> · newest fix {sayAgo(newest, now)}</> : null}
            <Behind page={page} />
        </span>
    );
}

/** What a report is of, and when it was made. */
function Reported({ objects }: { objects: number }): JSX.Element {
    const times = [recording!.since, recording!.until, recording!.made];
    const [since, until, made] = times.map((one) => Date.parse(one));
    return (
        <span class="summary">
            <b>{sayNumber(objects)}</b> objects · {saySpan(since!, until!)} · report of {sayInstant(made!)}
        </span>
    );
}

/** By which clock times are shown: that of the browser's zone, or UTC. Where both are one there is no choice. */
function ClockChoice(): JSX.Element | null {
    const clock = useStore(app, (one) => one.clock);
    if (ownZone === 'UTC') return null;
    return (
        <select
            class="clock"
            aria-label="Times in"
            value={clock}
            onChange={(event) => setClock(event.currentTarget.value as Clock)}
        >
            <option value="local">{ownZone}</option>
            <option value="utc">UTC</option>
        </select>
    );
}

function Header(): JSX.Element {
    const theme = useStore(app, (one) => one.theme);
    const isNarrow = useIsNarrow();
    const other = theme === 'light' ? 'dark' : 'light';
    return (
        <header class="top">
            <h1>
                <img src={ICON} alt="" />
                Fairway
            </h1>
            {isNarrow ? null : <Summary />}
            <FindObject
                stream={null}
                label="Find an object"
                onFound={(name, stream) => app.set({ object: { stream, name } })}
            />
            <ClockChoice />
            <button
                class="plain"
                aria-label={`Show it ${other}`}
                title={`Show it ${other}`}
                onClick={() => setTheme(other)}
            >
                {theme === 'light' ? '☾' : '☀'}
            </button>
        </header>
    );
}

function onTabKey(event: TargetedKeyboardEvent<HTMLElement>, tab: Tab): void {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const at = TABS.findIndex(([name]) => name === tab);
    const [next] = TABS[(at + step + TABS.length) % TABS.length]!;
    app.set({ tab: next });
    document.getElementById(`tab-${next}`)?.focus();
}

function Panels(): JSX.Element {
    const tab = useStore(app, (one) => one.tab);
    const isNarrow = useIsNarrow();
    return (
        <aside class="side" aria-label="Panels">
            {isNarrow ? <Summary /> : null}
            <div class="tabs" role="tablist" aria-label="Panels" onKeyDown={(event) => onTabKey(event, tab)}>
                {TABS.map(([name, label]) => (
                    <button
                        key={name}
                        id={`tab-${name}`}
                        role="tab"
                        aria-selected={tab === name}
                        aria-controls="panel"
                        tabIndex={tab === name ? 0 : -1}
                        onClick={() => app.set({ tab: name })}
                    >
                        {label}
                    </button>
                ))}
            </div>
            <div class="panel" id="panel" role="tabpanel" aria-labelledby={`tab-${tab}`} tabIndex={-1}>
                <h2 class="hush">{TABS.find(([name]) => name === tab)?.[1]}</h2>
                {tab === 'queries' ? <Queries /> : tab === 'ask' ? <Ask /> : <ServerSide />}
            </div>
        </aside>
    );
}

function Said(): JSX.Element {
    const said = useStore(app, (one) => one.said);
    return (
        <p class="hush" aria-live="polite">
            {said}
        </p>
    );
}

/** Leads past the map, for whoever goes by keys. */
function Skip(): JSX.Element {
    const skip = (event: Event): void => {
        event.preventDefault();
        document.getElementById('panel')?.focus();
    };
    return (
        <a class="skip" href="#panel" onClick={skip}>
            To the panels
        </a>
    );
}

export function Page(): JSX.Element {
    useStore(app, (one) => one.clock); // with another clock all times are drawn anew
    return (
        <div class="page">
            <Skip />
            <Header />
            <Banner />
            <UnknownPast />
            <main>
                <div class="view">
                    <div id="map" role="region" aria-label="Map: arrows move it, + and − change its scale" />
                    <ObjectPanel />
                    <FeaturePanel />
                    <Coordinates />
                    <TimeBar />
                </div>
                <div class="below">
                    <Panels />
                    <Legend />
                </div>
            </main>
            <Said />
        </div>
    );
}
