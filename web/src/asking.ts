// A question that is being drawn: its shape, its statement, what it would have told, and how it is registered.
import { app, latest_ms, place, say, streamOf } from './app';
import { choose, lookAt } from './choosing';
import { getJson, isAborted, pathOf, Refused, sendText, wordsOf } from './data/api';
import { Store } from './data/store';
import { FIRST_WISH, statementOf, type Shape, type Wish } from './data/statement';
import { DAY_MS, HOUR_MS, isoOf, MINUTE_MS, msOf, SECOND_MS } from './data/times';
import type { Place, Visit } from './data/types';
import { staysOf, type Stay } from './data/visits';
import { boxOf, Drawing, type Tool } from './map/draw';
import { MAP_COLOURS } from './map/colours';
import { metresBetween } from './data/space';

export type Period = 'now' | 'hour' | 'six' | 'day' | 'newest' | 'before' | 'week';

/** What a question would have told in an interval. */
export interface Told {
    from_ms: number;
    until_ms: number;
    isMoment: boolean; // who is in at its end, and since when
    stays: Stay[];
    hasMore: boolean; // there were more rows than are shown
    fixes: number; // that it follows from
    firstFix_ms: number | null; // of what is stored of the stream
    lastFix_ms: number | null;
    dwell_ms: number | null; // of a fence: how long one has to stay
}

export interface Asking {
    stream: string;
    tool: Tool | 'object' | null;
    isDrawing: boolean;
    shape: Shape | null;
    wish: Wish;
    text: string;
    isEdited: boolean; // by hand: the drawing does not overwrite it
    problem: string; // what is wrong with the text
    where: { line: number; column: number } | null;
    state: 'nothing' | 'asking' | 'told' | 'error';
    words: string;
    period: Period;
    told: Told | null;
    base: { name: string; told: Told | null } | null; // the registered query that this would take the place of
    stay: Stay | null; // one that is shown on the map
    name: string;
    registered: string; // what became of it
}

export const asking = new Store<Asking>({
    stream: '',
    tool: null,
    isDrawing: false,
    shape: null,
    wish: FIRST_WISH,
    text: '',
    isEdited: false,
    problem: '',
    where: null,
    state: 'nothing',
    words: '',
    period: 'day',
    told: null,
    base: null,
    stay: null,
    name: '',
    registered: '',
});

const AFTER_MS = 300; // since the last change of a drawing
const MOST_ROWS = 5000;
const CORRIDOR_M = 50;

let drawing: Drawing | null = null;
let waiting: ReturnType<typeof setTimeout> | undefined;
let running = new AbortController();
let ended_ms = Number.NEGATIVE_INFINITY;

export function startAsking(): void {
    const map = place.view!.map;
    const begin = (): void => {
        drawing = new Drawing(map, MAP_COLOURS[app.get().theme].drawn, takeShape, () => {
            ended_ms = performance.now();
            asking.set({ isDrawing: false });
        });
    };
    map.once('idle', begin);
}

/** When a drawing was last finished, by the clock of performance. */
export const drawnAt_ms = (): number => ended_ms;

export const drawingIsOn = (): boolean => asking.get().isDrawing;

export function setStream(stream: string): void {
    clear();
    asking.set({ stream });
}

/** Takes a tool: the next clicks on the map draw with it. */
export function take(tool: Tool | 'object'): void {
    const metres = sizeOfView_m();
    drawing?.clear();
    asking.set({
        tool,
        shape: null,
        isDrawing: tool !== 'object',
        registered: '',
        told: null,
        state: 'nothing',
        stay: null,
    });
    if (!asking.get().isEdited) asking.set({ text: '', problem: '' });
    if (tool !== 'object') drawing?.begin(tool, Math.min(CORRIDOR_M, metres / 10));
    say(tool === 'object' ? 'Choose an object on the map, or by its name.' : `Draw a ${tool} on the map.`);
}

/** Puts a shape of a good size into the middle of the map: for whoever draws without a pointer. */
export function putInMiddle(): void {
    const { tool } = asking.get();
    const map = place.view?.map;
    if (map === undefined || tool === null || tool === 'object') return;
    const { lng, lat } = map.getCenter();
    putShape(shapeInMiddle(tool, [lng, lat], sizeOfView_m() / 5));
}

export function putShape(shape: Shape): void {
    drawing?.put(shape);
    asking.set({ isDrawing: false });
    takeShape(shape);
}

function sizeOfView_m(): number {
    const bounds = place.view!.map.getBounds();
    return metresBetween([bounds.getWest(), bounds.getSouth()], [bounds.getWest(), bounds.getNorth()]);
}

function shapeInMiddle(tool: Tool, [lon, lat]: Place, size_m: number): Shape {
    const dLat = size_m / 111_195;
    const dLon = dLat / Math.cos((lat * Math.PI) / 180);
    if (tool === 'circle') return { type: 'circle', centre: [lon, lat], radius_m: Math.round(size_m) };
    if (tool === 'point') return { type: 'point', at: [lon, lat] };
    if (tool === 'corridor')
        return {
            type: 'corridor',
            line: [
                [lon - dLon, lat],
                [lon + dLon, lat],
            ],
            width_m: Math.round(size_m / 5),
        };
    const box: [number, number, number, number] = [lon - dLon, lat - dLat, lon + dLon, lat + dLat];
    if (tool === 'rectangle') return { type: 'rectangle', box };
    const [w, s, e, n] = box;
    return {
        type: 'polygon',
        ring: [
            [w, s],
            [e, s],
            [e, n],
            [w, n],
            [w, s],
        ],
    };
}

/** Asks about a feature of a layer as a region. */
export function askAbout(layer: string, fid: string): void {
    clear();
    app.set({ tab: 'ask', feature: null });
    takeShape({ type: 'feature', layer, fid });
}

/** An object was clicked while one is wanted to go with. */
export function goWith(object: string): void {
    takeShape({ type: 'object', object, radius_m: Math.max(50, Math.round(sizeOfView_m() / 200) * 10) });
    say(`The region goes with ${object}.`);
}

function takeShape(shape: Shape): void {
    asking.set({ shape });
    if (shape.type === 'corridor') drawing?.widen(shape.width_m);
    renew();
}

export function setWish(part: Partial<Wish>): void {
    asking.set({ wish: { ...asking.get().wish, ...part } });
    renew();
}

/** Another size of what is drawn, in metres of the map. */
export function setSize(metres: number): void {
    const { shape } = asking.get();
    if (shape === null || !(metres > 0)) return;
    if (shape.type === 'circle') putShape({ ...shape, radius_m: metres });
    else if (shape.type === 'corridor') putShape({ ...shape, width_m: metres });
    else if (shape.type === 'object') takeShape({ ...shape, radius_m: metres });
}

export function setPeriod(period: Period): void {
    asking.set({ period });
    askSoon();
}

/** The statement as the drawing has it, unless it was edited by hand. */
function renew(): void {
    const { stream, shape, wish, isEdited } = asking.get();
    const space = streamOf(stream)?.space;
    if (isEdited || space === undefined) return;
    const text = statementOf(stream, space, shape, wish) ?? '';
    asking.set({ text, problem: '', where: null, registered: '' });
    askSoon();
}

export function edit(text: string): void {
    asking.set({ text, isEdited: true, registered: '' });
    askSoon();
}

export function undoEdit(): void {
    asking.set({ isEdited: false, base: null });
    renew();
}

/** Begins with a query that is registered, to try another version of it. */
export function startFrom(name: string, stream: string, text: string): void {
    drawing?.clear();
    app.set({ tab: 'ask' });
    asking.set({
        stream,
        tool: null,
        shape: null,
        text,
        isEdited: true,
        base: { name, told: null },
        name,
        told: null,
        registered: '',
    });
    askSoon();
}

export function clear(): void {
    drawing?.clear();
    running.abort();
    const nothing = {
        tool: null,
        isDrawing: false,
        shape: null,
        text: '',
        isEdited: false,
        problem: '',
        where: null,
        base: null,
    } as const;
    asking.set({ ...nothing, state: 'nothing', words: '', told: null, stay: null, name: '', registered: '' });
}

function askSoon(): void {
    clearTimeout(waiting);
    waiting = setTimeout(() => void ask(), AFTER_MS);
}

/** The last time that a question can be about: what has been archived by then is all there is. */
export function answeredUntil_ms(stream: string): number {
    const until = streamOf(stream)?.answers_until;
    return until ? Math.floor(msOf(until) / SECOND_MS) * SECOND_MS : (latest_ms(stream) ?? Date.now());
}

/** From when to when is asked; of a replay the clock of its fixes counts: `newest` is the day of its newest fix. */
export function intervalOf(period: Period, now_ms: number): [number, number] {
    if (period === 'now') return [now_ms, now_ms];
    const midnight_ms = Math.floor(now_ms / DAY_MS) * DAY_MS;
    if (period === 'newest') return [midnight_ms, now_ms];
    if (period === 'before') return [midnight_ms - DAY_MS, midnight_ms];
    const length = { hour: HOUR_MS, six: 6 * HOUR_MS, day: DAY_MS, week: 7 * DAY_MS }[period];
    return [now_ms - length, now_ms];
}

/** Checks the statement, then asks what it would have told. */
async function ask(): Promise<void> {
    running.abort();
    running = new AbortController();
    const { signal } = running;
    const { text, period, base } = asking.get();
    if (text.trim() === '') return asking.set({ state: 'nothing', told: null, problem: '', where: null });
    asking.set({ state: 'asking', words: '' });
    try {
        const checked = await check(text, signal);
        if (checked === null) return;
        const interval = intervalOf(period, answeredUntil_ms(checked.stream));
        const told = { ...(await toldOf(text, interval, signal)), dwell_ms: dwellOf(checked) };
        const before = base === null ? null : await toldOf(await textOf(base.name), interval, signal);
        asking.set({ state: 'told', told, base: base === null ? null : { name: base.name, told: before }, stay: null });
        say(`${told.stays.length} visits`);
    } catch (error) {
        if (!isAborted(error)) asking.set({ state: 'error', words: wordsOf(error), told: null });
    }
}

interface Checked {
    stream: string;
    dwell_s: number | null;
}

const dwellOf = ({ dwell_s }: Checked): number | null => (dwell_s === null ? null : dwell_s * SECOND_MS);

async function check(text: string, signal: AbortSignal): Promise<Checked | null> {
    try {
        const checked = await sendText<Checked>('POST', '/check', text, signal);
        asking.set({ problem: '', where: null, stream: checked.stream });
        return checked;
    } catch (error) {
        if (!(error instanceof Refused)) throw error;
        const { line, column } = error.body as { line?: number; column?: number };
        const where = line === undefined || column === undefined ? null : { line, column };
        asking.set({ problem: wordsOf(error), where, state: 'nothing', told: null });
        return null;
    }
}

async function textOf(name: string): Promise<string> {
    const { text } = await getJson<{ text: string }>(pathOf(['queries', name]));
    return text.replace(/^\s*(REGISTER|REPLACE)\s+QUERY\s+.*?\s+AS\s+(?=SELECT)/is, '').replace(/;\s*$/, '');
}

interface Answered {
    rows: (Visit & { since_ts?: string })[];
    more: boolean;
    fixes: number;
    first_fix_ts: string | null;
    last_fix_ts: string | null;
}

async function toldOf(text: string, [from_ms, until_ms]: [number, number], signal: AbortSignal): Promise<Told> {
    const isMoment = from_ms === until_ms;
    const when = isMoment ? `AS OF '${isoOf(until_ms)}'` : `BETWEEN '${isoOf(from_ms)}' AND '${isoOf(until_ms)}'`;
    const statement = `${text.trim().replace(/;$/, '')}\n${when}`;
    const answered = await sendText<Answered>('POST', `/ask?limit=${MOST_ROWS}`, statement, signal);
    const { rows, more, fixes } = answered;
    const visits = isMoment ? rows.map((one) => ({ ...one, from_ts: one.since_ts!, to_ts: null })) : rows;
    const stays = staysOf(visits, until_ms);
    const first_ms = Math.min(until_ms - MINUTE_MS, ...stays.slice(0, 1).map((one) => one.from_ms));
    return {
        from_ms: isMoment ? first_ms : from_ms,
        until_ms,
        stays,
        isMoment,
        hasMore: more,
        fixes,
        firstFix_ms: answered.first_fix_ts === null ? null : msOf(answered.first_fix_ts),
        lastFix_ms: answered.last_fix_ts === null ? null : msOf(answered.last_fix_ts),
        dwell_ms: null,
    };
}

/** Registers the statement under its name; what it tells is followed at once. */
export async function register(): Promise<void> {
    const { name, text } = asking.get();
    try {
        const done = await sendText<{ queries: { action: string; version: number }[]; notices: string[] }>(
            'PUT',
            pathOf(['queries', name]),
            text,
        );
        const version = done.queries[0]?.version ?? 1;
        asking.set({
            registered: `${name} is registered, version ${version}. It tells who comes and goes from now on.`,
            problem: '',
            words: done.notices.join(' '),
        });
        say(`${name} is registered.`);
        choose(name);
    } catch (error) {
        asking.set({ registered: '', problem: wordsOf(error) });
    }
}

/** Goes over to the query that was just registered, and to where it is on the map. */
export function watch(name: string): void {
    app.set({ tab: 'queries' });
    const one = app.get().chosen.find((each) => each.name === name);
    if (one !== undefined) lookAt(one);
}

/** Shows the way of one stay on the map. */
export async function showStay(stay: Stay | null): Promise<void> {
    asking.set({ stay });
    const { view } = place;
    if (view === null) return;
    if (stay === null) return view.showStill('ways', { type: 'FeatureCollection', features: [] });
    const { stream } = asking.get();
    const path = pathOf(['ways', stream], {
        object: stay.object,
        from: isoOf(stay.from_ms - MINUTE_MS),
        to: isoOf(stay.to_ms + MINUTE_MS),
        limit: MOST_ROWS,
    });
    try {
        const { fixes } = await getJson<{ fixes: [number, number, number][] }>(path);
        const places = fixes.map(([, lon, lat]): Place => [lon, lat]);
        view.showStill('ways', wayOf(places));
        if (places.length > 0) view.bring(boxOf(places));
    } catch (error) {
        say(wordsOf(error));
    }
}

/** A way as a line with a point at its end. */
export function wayOf(places: Place[]): GeoJSON.FeatureCollection {
    const properties = { colour: -1 };
    const end = places.at(-1);
    if (end === undefined) return { type: 'FeatureCollection', features: [] };
    const line: GeoJSON.Feature = {
        type: 'Feature',
        properties,
        geometry: { type: 'LineString', coordinates: places },
    };
    const point: GeoJSON.Feature = { type: 'Feature', properties, geometry: { type: 'Point', coordinates: end } };
    return { type: 'FeatureCollection', features: places.length > 1 ? [line, point] : [point] };
}
