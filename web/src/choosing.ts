// Queries that are chosen: their members and regions on the map, and what comes and goes.
import { app, latest_ms, MOST_CHOSEN, place, queryOf, say, type Chosen } from './app';
import { getJson, pathOf, wordsOf } from './data/api';
import { Follower } from './data/follow';
import { applyTo, membersOf, type Members } from './data/members';
import { recordedSeries, recording } from './data/recorded';
import { isoOf } from './data/times';
import type { Change, ChangesBefore, Member, Place, Shapes } from './data/types';
import { forgetNotices, noteChanges } from './notices';
import type { Marked } from './map/objects';

const MOST_CHANGES = recording === null ? 200 : 20_000; // a report shows those up to any of its moments
const MOST_POINTS = 3600;

interface Answer {
    rows: Member[];
}

const followers = new Map<string, Follower>();
const members = new Map<string, Members>();

/** What came while the newest answer was on its way, which may not have it yet: it is told once more. */
const asked = new Map<string, Change[]>();

function update(name: string, part: Partial<Chosen> | ((one: Chosen) => Partial<Chosen>)): void {
    const chosen = app.get().chosen.map((one) => {
        if (one.name !== name) return one;
        return { ...one, ...(typeof part === 'function' ? part(one) : part) };
    });
    app.set({ chosen });
}

export const isChosen = (name: string): boolean => app.get().chosen.some((one) => one.name === name);

/** Chooses a query, or lets it go; of more than four the oldest is let go. */
export function toggle(name: string): void {
    if (isChosen(name)) drop(name);
    else choose(name);
}

export function drop(name: string): void {
    followers.get(name)?.stop();
    followers.delete(name);
    members.delete(name);
    forgetNotices(name);
    app.set({ chosen: app.get().chosen.filter((one) => one.name !== name) });
    showMarks();
}

export function choose(name: string): void {
    if (isChosen(name)) return;
    const before = app.get().chosen;
    if (before.length === MOST_CHOSEN) {
        say(`${before[0]!.name} is let go: four queries are followed at a time.`);
        drop(before[0]!.name);
    }
    const taken = app.get().chosen.map((one) => one.colour);
    const colour = [0, 1, 2, 3].find((one) => !taken.includes(one)) ?? 0;
    const fresh: Chosen = {
        name,
        colour,
        state: 'loading',
        words: '',
        members: [],
        changes: [],
        before: null,
        entered: 0,
        left: 0,
        series: [[], []],
        shapes: null,
        isAnswered: false,
        refused: '',
        news: '',
    };
    app.set({ chosen: [...app.get().chosen, fresh] });
    members.set(name, new Map());
    followers.set(name, follow(name));
    if (recording !== null) void recordedSeries(name).then((series) => update(name, { series }));
}

/** Goes to a query that was just registered: its card says `news`, and the map shows its regions. */
export async function goToQuery(name: string, news: string): Promise<void> {
    app.set({ tab: 'queries' });
    if (isChosen(name)) void askAnswer(name);
    else choose(name);
    update(name, { news });
    await askShapes(name);
    const one = app.get().chosen.find((each) => each.name === name);
    if (one !== undefined) lookAt(one);
}

export const forgetNews = (name: string): void => update(name, { news: '' });

function follow(name: string): Follower {
    let before: string = 'loading';
    return new Follower(name, {
        onChanges: (changes) => takeChanges(name, changes),
        onState: (state, words) => {
            update(name, { state, words });
            // Who is in is asked for once changes come, so that none can be missed between the two.
            if (state === 'live' && before === 'loading') void askAnswer(name);
            if (state === 'live') before = 'live';
        },
    });
}

/** Asks anew who is in each query that is chosen, now or at the moment that is looked at, one after the other. */
export async function askAnswers(): Promise<void> {
    const { at_ms, chosen } = app.get();
    for (const { name } of chosen) {
        if (app.get().at_ms !== at_ms) return; // that moment is looked at no more
        await askAnswer(name);
    }
}

async function askAnswer(name: string): Promise<void> {
    const { at_ms } = app.get();
    const at = at_ms === null ? null : isoOf(at_ms);
    const meanwhile: Change[] = [];
    asked.set(name, meanwhile);
    if (at === null) void askShapes(name);
    try {
        const answer = await getJson<Answer>(pathOf(['v1', 'answers', name], { at }));
        if (app.get().at_ms !== at_ms || !isChosen(name)) return;
        members.set(name, membersOf(answer.rows));
        meanwhile.forEach((one) => applyTo(members.get(name)!, one));
        showMembers(name, { isAnswered: true, refused: '' });
        if (at !== null) await askBefore(name, at);
    } catch (error) {
        update(name, { refused: wordsOf(error) });
    } finally {
        if (asked.get(name) === meanwhile) asked.delete(name);
    }
}

/** Asks what changed before a moment of the past, and how what moves or is met looked then. */
async function askBefore(name: string, at: string): Promise<void> {
    if (recording !== null) return; // a report has its changes and shapes
    const before = await getJson<ChangesBefore>(pathOf(['page', 'changes', name], { to: at }));
    update(name, { before });
    const shapes = app.get().chosen.find((one) => one.name === name)?.shapes ?? null;
    const isStill = (one: Shapes['features'][number]): boolean =>
        one.properties.role !== 'partner' && one.properties.follows === null;
    if (shapes === null || queryOf(name)?.kind === 'join' || !(shapes?.features ?? []).every(isStill))
        await askShapes(name, at);
}

async function askShapes(name: string, at: string | null = null): Promise<void> {
    try {
        const shapes = await getJson<Shapes>(pathOf(['page', 'shapes', name], { at }));
        update(name, { shapes });
    } catch {
        update(name, { shapes: null }); // a query without a region, or dropped meanwhile
    }
    showMarks();
}

function takeChanges(name: string, changes: Change[]): void {
    if (!isChosen(name)) return;
    const isNow = app.get().at_ms === null;
    const known = members.get(name)!;
    let [entered, left] = [0, 0];
    if (isNow) asked.get(name)?.push(...changes);
    noteChanges(name, changes);
    for (const one of changes) {
        if (one.sign > 0) entered += 1;
        if (one.sign < 0) left += 1;
        if (isNow) applyTo(known, one);
    }
    update(name, (one) => ({
        changes: [...changes.slice(-MOST_CHANGES).reverse(), ...one.changes].slice(0, MOST_CHANGES),
        entered: one.entered + entered,
        left: one.left + left,
    }));
    if (isNow && app.get().chosen.find((one) => one.name === name)!.isAnswered)
        showMembers(name, {}, Math.max(...changes.map((one) => Date.parse(one.event_ts))));
}

function showMembers(name: string, more: Partial<Chosen>, changed_ms = 0): void {
    const all = [...members.get(name)!.values()];
    update(name, (one) => ({ ...more, members: all, series: seriesWith(one, all.length, changed_ms) }));
    showMarks();
}

/** The series with how many are in now, by the stream's time; one of a report, or of the past, stays as it is. */
function seriesWith(one: Chosen, count: number, changed_ms: number): Chosen['series'] {
    if (recording !== null || app.get().at_ms !== null) return one.series;
    const [times, counts] = one.series;
    const newest_ms = latest_ms(queryOf(one.name)?.stream) ?? 0;
    const now_s = (Math.max(newest_ms, changed_ms) || Date.now()) / 1000;
    const before = times.findLastIndex((time_s) => time_s < now_s) + 1;
    return [
        [...times.slice(0, before), now_s].slice(-MOST_POINTS),
        [...counts.slice(0, before), count].slice(-MOST_POINTS),
    ];
}

/** Puts members and regions of all chosen queries on the map. */
export function showMarks(): void {
    const { view } = place;
    if (view === null) return;
    const { chosen } = app.get();
    view.marked = chosen.map(markedOf);
    view.showStill('shapes', { type: 'FeatureCollection', features: chosen.flatMap(stillOf) });
    view.draw();
}

function markedOf(one: Chosen): Marked {
    const features = one.shapes?.features ?? [];
    const moving = features.filter((each) => each.properties.follows !== null && each.properties.follows_at != null);
    const query = queryOf(one.name);
    const marks = query?.kind === 'aggregate' ? [] : one.members; // groups are no objects, whatever they are called
    const focals = features.flatMap((each) => each.properties.follows ?? []);
    return {
        query: one.name,
        colour: one.colour,
        stream: query?.stream ?? '',
        members: [...new Set(marks.map((each) => each.object))],
        focals: [...new Set(focals)],
        moving: moving.flatMap((each) =>
            ringsOf(each.geometry).map((ring) => ({
                ring,
                follows: each.properties.follows!,
                at: each.properties.follows_at!,
            })),
        ),
    };
}

function stillOf(one: Chosen): GeoJSON.Feature[] {
    const features = one.shapes?.features ?? [];
    const still = features.filter(
        (each) => each.geometry !== null && (each.properties.follows === null || each.properties.follows_at == null),
    );
    return still.map((each) => ({
        ...each,
        geometry: each.geometry!,
        properties: { ...each.properties, colour: one.colour },
    }));
}

function ringsOf(geometry: GeoJSON.Geometry | null): Place[][] {
    if (geometry === null) return [];
    if (geometry.type === 'Polygon') return [geometry.coordinates[0] as Place[]];
    if (geometry.type === 'MultiPolygon') return geometry.coordinates.map((one) => one[0] as Place[]);
    return [];
}

/** Shows the regions of a query, or else its members, in the middle of the map. */
export function lookAt(one: Chosen): void {
    const { view } = place;
    if (view === null) return;
    const places: Place[] = (one.shapes?.features ?? []).flatMap((each) => placesIn(each.geometry));
    const stream = queryOf(one.name)?.stream ?? '';
    for (const each of one.members) {
        const at = view.placeOf({ stream, name: each.object });
        if (at !== null) places.push(at);
    }
    if (places.length === 0) return;
    const lons = places.map((at) => at[0]);
    const lats = places.map((at) => at[1]);
    view.fit([Math.min(...lons), Math.min(...lats), Math.max(...lons), Math.max(...lats)], 16);
}

function placesIn(geometry: GeoJSON.Geometry | null): Place[] {
    if (geometry === null) return [];
    if (geometry.type === 'GeometryCollection') return geometry.geometries.flatMap(placesIn);
    const flat = (value: unknown): Place[] =>
        Array.isArray(value) && typeof value[0] === 'number' ? [value as Place] : (value as unknown[]).flatMap(flat);
    return flat(geometry.coordinates);
}
