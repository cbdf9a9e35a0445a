// A question that is being drawn: its shape, its statement, and how it is registered.
import { app, place, say, streamOf } from './app';
import { goToQuery } from './choosing';
import { pathOf, sendText, wordsOf } from './data/api';
import { metresBetween } from './data/space';
import { statementOf, type Shape, type Wish } from './data/statement';
import type { Place } from './data/types';
import { followDay } from './ghosts';
import { Drawing, type Tool } from './map/draw';
import { MAP_COLOURS } from './map/colours';
import { goTo } from './moments';
import { asking, type Asking, type Period } from './question';
import { askSoon, followNewest, giveUp, showStay } from './told';

const CORRIDOR_M = 50;

let drawing: Drawing | null = null;
let ended_ms = Number.NEGATIVE_INFINITY;

export function startAsking(): void {
    const map = place.view!.map;
    const begin = (): void => {
        drawing = new Drawing(map, MAP_COLOURS[app.get().theme].drawn, takeShape, () => {
            ended_ms = performance.now();
            asking.set({ isDrawing: false });
        });
        const { tool, shape } = asking.get();
        if (tool !== null && shape === null) take(tool); // somebody was faster than the map
    };
    map.once('style.load', begin); // not when all tiles are there, for which a click does not wait
    followNewest();
    followDay();
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
    giveUp();
    asking.set({
        tool,
        shape: null,
        isDrawing: tool !== 'object',
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
    asking.set({ text, problem: '', where: null });
    askSoon();
}

export function edit(text: string): void {
    asking.set({ text, isEdited: true });
    askSoon();
}

export function undoEdit(): void {
    asking.set({ isEdited: false, base: null });
    renew();
}

/** Begins with a query that is registered, to try another version of it. */
export function startFrom(name: string, stream: string, text: string): void {
    open(stream, text, name, { name, told: null });
}

/** Opens the statement of a query to register it a second time, under another name. */
export function startCopy(name: string, stream: string, text: string): void {
    const taken = (app.get().page?.queries ?? []).map((one) => one.name.toLowerCase());
    let number = 2;
    while (taken.includes(`${name}_${number}`.toLowerCase())) number += 1;
    open(stream, text, `${name}_${number}`, null);
}

function open(stream: string, text: string, name: string, base: Asking['base']): void {
    drawing?.clear();
    app.set({ tab: 'ask' });
    asking.set({ stream, tool: null, shape: null, text, isEdited: true, base, name, told: null });
    askSoon();
}

export function clear(): void {
    drawing?.clear();
    giveUp();
    if (asking.get().stay !== null) void showStay(null);
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
    asking.set({ ...nothing, state: 'nothing', words: '', told: null, stay: null, name: '' });
}

interface Registered {
    queries: { action: string; version: number }[];
    notices: string[];
}

/** Registers the statement under its name, and goes to the query: what is drawn was the question, and is done with. */
export async function register(): Promise<void> {
    const { text } = asking.get();
    const name = asking.get().name.trim();
    let done: Registered;
    try {
        done = await sendText<Registered>('PUT', pathOf(['v1', 'queries', name]), text);
    } catch (error) {
        return asking.set({ problem: wordsOf(error) });
    }
    const version = done.queries[0]?.version ?? 1;
    const news = `${name} is registered, version ${version}. It tells who comes and goes from now on.`;
    clear();
    goTo(null);
    say(`${name} is registered.`);
    await goToQuery(name, [news, ...done.notices].join(' '));
}
