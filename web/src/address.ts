// The address of what is looked at: a moment, queries, an object, a place. It can be sent to somebody else.
import { app, place, type Tab } from './app';
import { choose, drop } from './choosing';
import { isoOf, msOf } from './data/times';
import { hasChosen } from './liveliest';
import { goTo } from './moments';
import { fitToLayer, keepView } from './session';

const TABS: Tab[] = ['queries', 'ask', 'server'];
let written = '';

/** The part of the address behind #. */
export function addressOf(): string {
    const { at_ms, chosen, object, tab } = app.get();
    const parts: [string, string][] = [];
    if (tab !== 'queries') parts.push(['tab', tab]);
    for (const one of chosen) parts.push(['query', one.name]);
    if (chosen.length === 0 && hasChosen()) parts.push(['query', '']); // none, and none shall be chosen by itself
    if (object !== null) parts.push(['object', `${object.stream}/${object.name}`]);
    if (at_ms !== null) parts.push(['at', isoOf(at_ms)]);
    const map = place.view?.map;
    if (map !== undefined && map.getZoom() > 1) {
        const { lng, lat } = map.getCenter();
        parts.push(['map', `${lng.toFixed(5)},${lat.toFixed(5)},${map.getZoom().toFixed(2)}`]);
    }
    return new URLSearchParams(parts).toString();
}

export function keepAddress(): void {
    app.subscribe(writeAddress);
    place.view?.map.on('moveend', writeAddress);
    addEventListener('hashchange', () => {
        if (location.hash.slice(1) !== written) readAddress();
    });
}

function writeAddress(): void {
    const text = addressOf();
    if (text === written) return;
    written = text;
    history.replaceState(null, '', `#${text}`);
}

/** Shows what the address says. */
export function readAddress(): void {
    const params = new URLSearchParams(location.hash.slice(1));
    readTab(params);
    readMap(params.get('map'));
    readObject(params.get('object'));
    readQueries(params.getAll('query').filter((name) => name !== ''));
    readMoment(params.get('at'));
}

function readTab(params: URLSearchParams): void {
    const tab = params.get('tab') as Tab;
    if (TABS.includes(tab)) app.set({ tab });
    if (params.has('regions')) app.set({ showsIndex: true });
    if (params.has('layer')) fitToLayer(params.get('layer')!);
}

/** Chooses these queries, and lets all others go. */
function readQueries(wanted: string[]): void {
    for (const { name } of app.get().chosen) if (!wanted.includes(name)) drop(name);
    wanted.forEach(choose);
}

function readMoment(at: string | null): void {
    const at_ms = at === null ? Number.NaN : msOf(at);
    goTo(Number.isNaN(at_ms) ? null : at_ms);
}

function readMap(text: string | null): void {
    const [lon, lat, zoom] = (text ?? '').split(',').map(Number);
    if (lon === undefined || lat === undefined || zoom === undefined || [lon, lat, zoom].some(Number.isNaN)) return;
    keepView();
    place.view?.map.jumpTo({ center: [lon, lat], zoom });
}

function readObject(text: string | null): void {
    const cut = text?.indexOf('/') ?? -1;
    app.set({ object: text === null || cut < 1 ? null : { stream: text.slice(0, cut), name: text.slice(cut + 1) } });
}
