// How the server is: streams, queries by kind, layers, the global index, deliveries.
import type { ComponentChildren, JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { app, isHidden, place } from '../app';
import { getJson, pathOf } from '../data/api';
import { addressOfPart, recording } from '../data/recorded';
import { useStore } from '../data/store';
import { msOf, sayDuration, sayInstant, sayNumber, sayRate, withShownTimes } from '../data/times';
import type { Alert, LayerState, PageState, QueryState, StreamState } from '../data/types';
import { sayKind } from '../kinds';
import { Facts, Notice } from '../parts/small';
import { Workers } from './workers';

const LICENCES = addressOfPart('licences', 'text/plain', '/page/files/licences.txt');

function Shown({ what, label }: { what: string; label: string }): JSX.Element {
    const hidden = useStore(app, (one) => one.hidden);
    const flip = (): void =>
        app.set({ hidden: isHidden(what) ? hidden.filter((one) => one !== what) : [...hidden, what] });
    return (
        <label class="shown">
            <input
                type="checkbox"
                checked={!hidden.includes(what)}
                onChange={flip}
                aria-label={`Show ${label} on the map`}
            />{' '}
            on the map
        </label>
    );
}

const ms = (value: number | null | undefined): string =>
    value === null || value === undefined ? '–' : `${sayNumber(value)} ms`;

/** Milliseconds, from a second on as seconds. */
const sayShort = (value: number | null): string =>
    value === null || value < 1000 ? ms(value) : `${(value / 1000).toFixed(1)} s`;

const lagOf = (lag_s: number | null): string => (lag_s === null ? '–' : sayDuration(lag_s * 1000));

/** How old what is on the map is: the server's lag when it was asked, and the time since, also while it answers. */
function lagOfMap(stream: string): string {
    const mapped_ms = place.mapped.get(stream);
    return mapped_ms === undefined || app.get().at_ms !== null ? '–' : sayDuration(Math.max(0, Date.now() - mapped_ms));
}

function sayLatency(stream: StreamState): string {
    const told = stream.latency_ms;
    return told === null ? '–' : `${sayShort(told.p50)} · ${sayShort(told.p99)}`;
}

function sayBehind(stream: StreamState): string {
    return stream.lag_segments === null ? '–' : `${sayNumber(stream.lag_segments)} segments`;
}

function Rejects({ rejects }: { rejects: Record<string, number> | null }): JSX.Element | null {
    const known = Object.entries(rejects ?? {}).filter(([, count]) => count > 0);
    if (known.length === 0) return null;
    return (
        <p class="rejects">Rejected: {known.map(([reason, count]) => `${sayNumber(count)} ${reason}`).join(', ')}</p>
    );
}

function factsOf(stream: StreamState): [string, string][] {
    return [
        ['objects', sayNumber(stream.objects)],
        ['fixes', sayRate(stream.fixes_per_s)],
        ['behind', sayBehind(stream)],
        ['lag', lagOf(stream.lag_s)],
        ['lag of the map', lagOfMap(stream.name)],
        ['archive lag', lagOf(stream.archive_lag_s)],
        ['latency p50 · p99', sayLatency(stream)],
        ['engine', stream.engine ?? '–'],
    ];
}

function StreamCard({ stream }: { stream: StreamState }): JSX.Element {
    const isWell = stream.state === 'running' || stream.state === 'idle' || stream.state === 'finished';
    return (
        <section class="card" aria-label={`Stream ${stream.name}`}>
            <header>
                <h4>{stream.name}</h4>
                <span class={isWell ? 'state good' : 'state bad'}>{stream.state}</span>
                <Shown what={`stream:${stream.name}`} label={stream.name} />
            </header>
            <Facts facts={factsOf(stream)} />
            {stream.why === null || isWell ? null : <Notice kind="error">{stream.why}</Notice>}
            {stream.warnings?.length ? <Notice kind="error">{stream.warnings.join('. ')}.</Notice> : null}
            <Workers stream={stream.name} workers={stream.workers ?? []} />
            <Rejects rejects={stream.rejects} />
            {stream.sources.map((one, i) => (
                <Source source={one} key={i} />
            ))}
        </section>
    );
}

function Source({ source }: { source: Record<string, unknown> }): JSX.Element {
    const { error, warning, ...counts } = source;
    const wrong = [error, warning].filter((said) => typeof said === 'string');
    return (
        <>
            <p class="quiet">source {sayRecord(counts)}</p>
            {wrong.map((said) => (
                <Notice kind="error" key={said}>
                    {said}
                </Notice>
            ))}
        </>
    );
}

function sayRecord(record: Record<string, unknown>): string {
    const plain = Object.entries(record).filter(([, value]) => value !== null && typeof value !== 'object');
    return plain
        .map(([name, value]) => `${name} ${typeof value === 'number' ? sayNumber(value) : String(value)}`)
        .join(' · ');
}

function Failed({ queries }: { queries: QueryState[] }): JSX.Element | null {
    const failed = queries.filter((one) => one.state !== 'registered');
    if (failed.length === 0) return null;
    return (
        <ul class="failed" aria-label="Queries that do not run">
            {failed.map((one) => (
                <li key={one.name} class="notice error">
                    <b>{one.name}</b> {one.state}: {one.why ?? 'no cause is known'}
                </li>
            ))}
        </ul>
    );
}

function byKind(queries: QueryState[]): [string, QueryState[]][] {
    const kinds = Map.groupBy(queries, (one) => one.kind);
    return [...kinds].sort((a, b) => b[1].length - a[1].length);
}

const sumOf = (queries: QueryState[], pick: (one: QueryState) => number | null): number | null => {
    const known = queries.map(pick).filter((one) => one !== null);
    return known.length === 0 ? null : known.reduce((sum, one) => sum + one, 0);
};

const perSecond = (per_min: number | null): number | null => (per_min === null ? null : per_min / 60);

function NoQuery(): JSX.Element {
    if (recording !== null) return <Notice>No query was registered.</Notice>;
    return (
        <Notice>
            No query is registered.{' '}
            <button class="link" onClick={() => app.set({ tab: 'ask' })}>
                Draw the first one
            </button>{' '}
            on the map.
        </Notice>
    );
}

function QueryKinds({ queries }: { queries: QueryState[] }): JSX.Element {
    if (queries.length === 0) return <NoQuery />;
    return (
        <table class="kinds" aria-label="Queries by kind">
            <thead>
                <tr>
                    <th scope="col">kind</th>
                    <th scope="col">queries</th>
                    <th scope="col">in</th>
                    <th scope="col">changes</th>
                </tr>
            </thead>
            <tbody>
                {byKind(queries).map(([kind, all]) => (
                    <tr key={kind}>
                        <th scope="row">{sayKind(kind)}</th>
                        <td>{sayNumber(all.length)}</td>
                        <td>{sayNumber(sumOf(all, (one) => one.members))}</td>
                        <td>{sayRate(perSecond(sumOf(all, (one) => one.changes_per_min)))}</td>
                    </tr>
                ))}
            </tbody>
        </table>
    );
}

function Layer({ layer }: { layer: LayerState }): JSX.Element {
    const kinds = Object.entries(layer.kinds)
        .sort((a, b) => b[1] - a[1])
        .slice(0, 5);
    return (
        <section class="card" aria-label={`Layer ${layer.name}`}>
            <header>
                <h4>{layer.name}</h4>
                <Shown what={`layer:${layer.name}`} label={layer.name} />
            </header>
            <p class="quiet">
                {sayNumber(layer.features)} features, version {layer.version}
                {kinds.length === 0
                    ? ''
                    : `: ${kinds.map(([kind, count]) => `${sayNumber(count)} ${kind}`).join(', ')}`}
                {layer.attribution === null ? '' : `. ${layer.attribution}`}
            </p>
        </section>
    );
}

type Regions = GeoJSON.FeatureCollection<
    GeoJSON.Geometry,
    { region: number; rows: number | null; share: number | null }
>;

/** The global index on the map: the more rows a region has, the warmer. */
function Index({ page }: { page: PageState }): JSX.Element {
    const shows = useStore(app, (one) => one.showsIndex);
    useEffect(() => {
        void showIndex(shows ? page.streams.map((one) => one.name) : []);
    }, [shows, page.streams.length]);
    return (
        <label class="shown">
            <input type="checkbox" checked={shows} onChange={() => app.set({ showsIndex: !shows })} /> Show regions of
            the index, warmer where more lies
        </label>
    );
}

async function showIndex(streams: string[]): Promise<void> {
    const told = await Promise.all(
        streams.map((name) => getJson<Regions>(pathOf(['page', 'regions', name])).catch(() => null)),
    );
    const features = told.flatMap((one) => one?.features ?? []);
    const most = Math.max(1e-9, ...features.map((one) => one.properties.share ?? 0));
    const warmed = features.map((one) => ({
        ...one,
        properties: { ...one.properties, heat: (one.properties.share ?? 0) / most },
    }));
    place.view?.showStill('index', { type: 'FeatureCollection', features: warmed });
}

function Alerts({ alerts }: { alerts: Alert[] }): JSX.Element {
    if (alerts.length === 0) return <Notice>Nothing yet. Warnings and errors of streams will stand here.</Notice>;
    return (
        <ol class="alerts">
            {alerts
                .slice(-8)
                .reverse()
                .map((one) => (
                    <li key={`${one.ts}/${one.stream}/${one.text}`}>
                        <time class="quiet" dateTime={one.ts}>
                            {sayInstant(msOf(one.ts))}
                        </time>{' '}
                        <b>{one.stream}</b>{' '}
                        <span class={one.level === 'error' ? 'minus' : ''}>{withShownTimes(one.text)}</span>
                    </li>
                ))}
        </ol>
    );
}

function Part({ title, children }: { title: string; children: ComponentChildren }): JSX.Element {
    return (
        <section class="part">
            <h3>{title}</h3>
            {children}
        </section>
    );
}

function Streams({ streams }: { streams: StreamState[] }): JSX.Element {
    return (
        <Part title="Streams">
            {streams.length === 0 ? (
                <Notice>
                    There is no stream yet: <code>fairway check FILE --write NAME</code> adds one, and{' '}
                    <code>fairway serve</code> has it when it is started again.
                </Notice>
            ) : (
                streams.map((one) => <StreamCard key={one.name} stream={one} />)
            )}
        </Part>
    );
}

function Layers({ layers }: { layers: LayerState[] }): JSX.Element {
    return (
        <Part title="Layers">
            {layers.length === 0 ? (
                <Notice>
                    There is no layer yet: <code>fairway layer load NAME FILE</code> brings one.
                </Notice>
            ) : (
                layers.map((one) => <Layer key={one.name} layer={one} />)
            )}
        </Part>
    );
}

function Deliveries({ deliveries }: { deliveries: PageState['deliveries'] }): JSX.Element {
    return (
        <Part title="Deliveries">
            {deliveries.length === 0 ? (
                <Notice>
                    Nothing is delivered to others: a section of conf/deliveries.toml says to whom, and{' '}
                    <code>fairway deliver NAME</code> does it.
                </Notice>
            ) : (
                deliveries.map((one, i) => <p key={i}>{sayRecord(one)}</p>)
            )}
        </Part>
    );
}

export function ServerSide(): JSX.Element {
    const page = useStore(app, (one) => one.page);
    if (page === null) return <Notice kind="loading">Asking the server how it is …</Notice>;
    return (
        <div class="server">
            {Object.entries(page.broken_streams).map(([name, why]) => (
                <Notice kind="error" key={name}>
                    stream {name}: {why}
                </Notice>
            ))}
            <Streams streams={page.streams} />
            <Part title="Queries">
                <Failed queries={page.queries} />
                <QueryKinds queries={page.queries} />
            </Part>
            <Layers layers={page.layers} />
            <Part title="Global index">
                <Index page={page} />
            </Part>
            <Deliveries deliveries={page.deliveries} />
            <Part title="Reported lately">
                <Alerts alerts={page.alerts} />
            </Part>
            <p class="quiet">
                Fairway {page.version} · <a href={LICENCES}>licences</a>
            </p>
        </div>
    );
}
