// The page's clockwork: asks the server how things are, where objects are, and hands it to map and panels.
import { app, isHidden, place, say, type Connection } from './app';
import { getBytes, getJson, pathOf, Refused, wordsOf } from './data/api';
import { Objects, unpackPositions } from './data/live';
import { isoOf } from './data/times';
import type { Box, PageState, StreamState } from './data/types';
import { groundOf } from './map/ground';
import { showMarks } from './choosing';
import { askCourses } from './courses';
import { beginChoosing, chooseLiveliest } from './liveliest';

const STATE_MS = 2000;
const LIVE_MS = 1000;
const COURSES_MS = 5000;
export const PAST_MS = 600; // how long objects glide to a moment that was chosen

const wantsStill = matchMedia('(prefers-reduced-motion: reduce)'); // objects are where they are known to be, at once
const cursors = new Map<string, string>();
let firstLayer: string | null = null;
let fitted: 'no' | 'layers' | 'yes' = 'no'; // what the map was brought to, at first

const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

export function startSession(): void {
    beginChoosing();
    void keep(askState, STATE_MS);
    void keep(askObjects, LIVE_MS);
    void keep(askCourses, COURSES_MS);
    app.subscribe(showBase);
}

async function keep(what: () => Promise<void>, every_ms: number): Promise<void> {
    for (;;) {
        const began = performance.now();
        try {
            await what();
        } catch (error) {
            takeError(error);
        }
        await pause(Math.max(100, every_ms - (performance.now() - began)));
    }
}

function takeError(error: unknown): void {
    const needsToken = error instanceof Refused && error.status === 401;
    const connection: Connection = needsToken ? 'token' : 'lost';
    if (app.get().connection !== connection)
        say(needsToken ? 'The server asks for a token.' : 'No answer from the server.');
    app.set({ connection, words: wordsOf(error) });
}

export async function askState(): Promise<void> {
    const page = await getJson<PageState>('/page/state');
    if (app.get().connection === 'lost') say('The server answers again.');
    const known = app.get().page?.queries.length;
    app.set({ page, connection: 'ok', words: '', seen_ms: Date.now() });
    if (page.queries.length !== known) showMarks(); // of a new query it is known only now whose objects it is about
    fitOnce(page);
    chooseLiveliest();
}

/** The first look: everything there is, unless the address says where to look. */
function fitOnce(page: PageState): void {
    const { view } = place;
    if (fitted === 'yes' || view === null) return;
    const wanted = page.layers.find((one) => one.name === firstLayer)?.extent ?? null;
    if (wanted !== null) {
        view.fit(wanted);
        keepView();
        return;
    }
    const streams = page.streams.map((one) => one.extent).filter((one) => one !== null);
    const layers = page.layers.map((one) => one.extent).filter((one) => one !== null);
    if (streams.length > 0) view.fit(around(streams));
    else if (layers.length > 0 && fitted === 'no') view.fit(around(layers));
    if (streams.length + layers.length > 0) fitted = streams.length > 0 ? 'yes' : 'layers';
}

/** Shows a layer first, in the place of all there is. */
export function fitToLayer(name: string): void {
    firstLayer = name;
}

export function keepView(): void {
    fitted = 'yes';
}

export function around(boxes: Box[]): Box {
    const side = (k: number, best: (...all: number[]) => number): number => best(...boxes.map((one) => one[k]!));
    return [side(0, Math.min), side(1, Math.min), side(2, Math.max), side(3, Math.max)];
}

const shownStreams = (): StreamState[] =>
    (app.get().page?.streams ?? []).filter((one) => !isHidden(`stream:${one.name}`));

async function askObjects(): Promise<void> {
    const { view } = place;
    if (view === null || app.get().at_ms !== null) return;
    forgetHidden();
    for (const { name } of shownStreams()) {
        const began_ms = Date.now();
        const bytes = await getBytes(pathOf(['page', 'live', name], { since: cursors.get(name) ?? null }));
        if (app.get().at_ms !== null) return; // meanwhile somebody looks at the past
        const news = unpackPositions(bytes);
        cursors.set(name, news.cursor);
        if (news.lag_s !== null) place.mapped.set(name, began_ms - news.lag_s * 1000);
        if (news.latestEvent !== null) place.latest.set(name, Date.parse(news.latestEvent));
        takeObjects(name, news, LIVE_MS);
    }
}

function takeObjects(name: string, news: ReturnType<typeof unpackPositions>, takes_ms: number): void {
    const view = place.view!;
    const objects = view.streams.get(name) ?? new Objects();
    view.streams.set(name, objects);
    objects.take(news, performance.now(), wantsStill.matches ? 0 : takes_ms);
    if (news.isWhole) {
        showMarks();
        view.draw();
    }
}

function forgetHidden(): void {
    const view = place.view!;
    const shown = new Set(shownStreams().map((one) => one.name));
    [...view.streams.keys()].filter((one) => !shown.has(one)).forEach(forgetObjects);
}

/** Takes the objects of a stream from the map; when it is asked about again, all of them come. */
function forgetObjects(name: string): void {
    const view = place.view!;
    cursors.delete(name);
    if (view.streams.delete(name)) view.draw();
}

let asked_ms: number | null = null;
let glide_ms = PAST_MS;
let isAsking = false;

/** Shows where objects were, who glide there; while one moment is asked for, the newest of all others waits. */
export async function showPast(at_ms: number, takes_ms: number): Promise<void> {
    asked_ms = at_ms;
    glide_ms = takes_ms;
    if (isAsking) return;
    isAsking = true;
    try {
        while (asked_ms !== null) {
            const now_ms: number = asked_ms;
            asked_ms = null;
            if (app.get().page === null) await askState(); // an address leads here before anything is known
            const unknown = await showStreamsAt(now_ms);
            if (app.get().at_ms === null) return;
            app.set({ unknownPast: unknown });
        }
    } catch (error) {
        app.set({ words: wordsOf(error) });
    } finally {
        isAsking = false;
    }
}

/** Shows where the objects of each stream were; gives of which streams that is not known, and why. */
async function showStreamsAt(at_ms: number): Promise<string[]> {
    const unknown: string[] = [];
    for (const { name } of shownStreams()) {
        try {
            const news = unpackPositions(await getBytes(pathOf(['page', 'past', name], { at: isoOf(at_ms) })));
            if (app.get().at_ms === null) break;
            takeObjects(name, news, glide_ms);
        } catch (error) {
            if (app.get().at_ms === null) break;
            forgetObjects(name); // they are where they are now: not what the map says that it shows
            unknown.push(`${name}: ${wordsOf(error)}`);
        }
    }
    return unknown;
}

/** Back to now: everything is asked for anew. */
export function forgetPast(): void {
    cursors.clear();
    app.set({ unknownPast: [] });
}

let layersKey = '';

function showBase(): void {
    const { view } = place;
    const { page, theme, hidden } = app.get();
    if (view === null || page === null) return;
    const ground = groundOf(page);
    const key = JSON.stringify([theme, hidden, ground, page.layers.map((one) => [one.name, one.version])]);
    if (key === layersKey) return;
    layersKey = key;
    view.showLayers(
        page.layers.filter((one) => !isHidden(`layer:${one.name}`)),
        theme,
        ground,
    );
}
