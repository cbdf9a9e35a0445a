// What a question would have told: asked after each change of it, and again as fixes come while somebody looks.
import { app, latest_ms, place, say, streamOf } from './app';
import { getJson, isAborted, pathOf, Refused, sendText, wordsOf } from './data/api';
import { selectOf } from './data/statement';
import { DAY_MS, dayBefore, dayOf, HOUR_MS, isoOf, MINUTE_MS, msOf, SECOND_MS } from './data/times';
import type { Visit } from './data/types';
import { keyOf, staysOf, type Stay } from './data/visits';
import { askWay, wayOf } from './data/way';
import { boxOf } from './map/draw';
import { asking, type Period, type Told } from './question';

const AFTER_MS = 300; // since the last change of a drawing
const AGAIN_MS = 3000; // between an answer and the next one about newer fixes, at least
const AGAIN_SHARE = 4; // and so many times as long as the answer took: most of the time the server is free
const MOST_ROWS = 5000;

let waiting: ReturnType<typeof setTimeout> | undefined;
let running = new AbortController();
let isAsking = false;
let again_ms = 0; // by the clock of performance
let askedBy = app.get().clock; // by whose days was asked

/** Asks once the question has stood still for a moment. */
export function askSoon(): void {
    giveUp();
    waiting = setTimeout(() => {
        waiting = undefined;
        void ask();
    }, AFTER_MS);
}

/** Gives up what is being asked. */
export function giveUp(): void {
    clearTimeout(waiting);
    waiting = undefined;
    running.abort();
}

/** Asks the same anew as fixes come, while somebody looks at the answer. */
export function followNewest(): void {
    app.subscribe(() => {
        if (isBehind()) void askAgain();
    });
}

function isBehind(): boolean {
    const { state, told, period, stream, isDrawing } = asking.get();
    const isSeen = app.get().tab === 'ask' && !document.hidden;
    if (!isSeen || isDrawing || isAsking || waiting !== undefined) return false;
    if (state !== 'told' || told === null) return false;
    if (askedBy !== app.get().clock) return true; // its days begin at other times
    if (performance.now() < again_ms) return false;
    return intervalOf(period, answeredUntil_ms(stream))[1] !== told.until_ms;
}

/** The last time that a question can be about: what has been archived by then is all there is. */
export function answeredUntil_ms(stream: string): number {
    const until = streamOf(stream)?.answers_until;
    return until ? Math.floor(msOf(until) / SECOND_MS) * SECOND_MS : (latest_ms(stream) ?? Date.now());
}

/** From when to when is asked; of a replay the clock of its fixes counts: `newest` is the day of its newest fix. */
export function intervalOf(period: Period, now_ms: number): [number, number] {
    if (period === 'now') return [now_ms, now_ms];
    const midnight_ms = dayOf(now_ms);
    if (period === 'newest') return [midnight_ms, now_ms];
    if (period === 'before') return [dayBefore(now_ms), midnight_ms];
    const length = { hour: HOUR_MS, six: 6 * HOUR_MS, day: DAY_MS, week: 7 * DAY_MS }[period];
    return [now_ms - length, now_ms];
}

/** Checks the statement, then asks what it would have told. */
async function ask(): Promise<void> {
    const { text } = asking.get();
    if (text.trim() === '') return asking.set({ state: 'nothing', told: null, problem: '', where: null });
    asking.set({ state: 'asking', words: '' });
    await guarded(async (signal) => {
        const checked = await check(text, signal);
        if (checked === null) return;
        await tell(dwellOf(checked), signal);
        say(`${asking.get().told!.stays.length} visits`);
    });
}

/** Asks what is told already up to the newest fix; it stands there until the answer is here. */
async function askAgain(): Promise<void> {
    await guarded((signal) => tell(asking.get().told!.dwell_ms, signal));
}

/** One question at a time; a newer one takes the place of one that is on its way. */
async function guarded(question: (signal: AbortSignal) => Promise<void>): Promise<void> {
    running.abort();
    const mine = (running = new AbortController());
    const began_ms = performance.now();
    isAsking = true;
    try {
        await question(mine.signal);
    } catch (error) {
        if (!isAborted(error)) asking.set({ state: 'error', words: wordsOf(error), told: null });
    } finally {
        const took_ms = performance.now() - began_ms;
        again_ms = performance.now() + Math.max(AGAIN_MS, AGAIN_SHARE * took_ms);
        if (running === mine) isAsking = false;
    }
}

/** Sets what the statement, and the registered one beside it, would have told; a stay that is shown stays shown. */
async function tell(dwell_ms: number | null, signal: AbortSignal): Promise<void> {
    const { text, period, base, stream } = asking.get();
    askedBy = app.get().clock;
    const interval = intervalOf(period, answeredUntil_ms(stream));
    const told = { ...(await toldOf(text, interval, signal)), dwell_ms };
    const before =
        base === null ? null : { name: base.name, told: await toldOf(await textOf(base.name), interval, signal) };
    const { stay } = asking.get();
    asking.set({ state: 'told', told, base: before });
    if (stay !== null) await drawStay(told.stays.find((one) => keyOf(one) === keyOf(stay)) ?? null);
}

interface Checked {
    stream: string;
    dwell_s: number | null;
}

const dwellOf = ({ dwell_s }: Checked): number | null => (dwell_s === null ? null : dwell_s * SECOND_MS);

async function check(text: string, signal: AbortSignal): Promise<Checked | null> {
    try {
        const checked = await sendText<Checked>('POST', '/page/check', text, signal);
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
    return selectOf((await getJson<{ text: string }>(pathOf(['v1', 'queries', name]))).text);
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
    const answered = await sendText<Answered>('POST', `/page/ask?limit=${MOST_ROWS}`, statement, signal);
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

/** Shows the way of one stay on the map, and brings it into sight. */
export async function showStay(stay: Stay | null): Promise<void> {
    const places = await drawStay(stay);
    if (places.length > 0) place.view?.bring(boxOf(places));
}

/** Draws the way of a stay, null: takes it away. Gives its places. */
async function drawStay(stay: Stay | null): Promise<[number, number][]> {
    const { stream } = asking.get();
    asking.set({ stay });
    try {
        const places =
            stay === null ? [] : await askWay(stream, stay.object, stay.from_ms - MINUTE_MS, stay.to_ms + MINUTE_MS);
        if (asking.get().stay !== stay) return []; // meanwhile another one is shown
        place.view?.showStill('ways', wayOf(places));
        return places;
    } catch (error) {
        say(wordsOf(error));
        return [];
    }
}
