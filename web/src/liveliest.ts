// What is chosen when the page opens and its address names no query: the query that changes most, once.
import { app, say } from './app';
import { choose } from './choosing';
import { recording } from './data/recorded';
import type { QueryState } from './data/types';

const WAITS_MS = 8000; // for a query that changes; after that the one with most members is as good
const SAME_PRESS_MS = 1000;
const MOST_MEMBERS = 10_000; // all of them are asked for: a larger answer is chosen by whoever wants to wait for it

let isOver = recording !== null; // whoever looks, or an address, has chosen already
let chosen_ms = Number.NEGATIVE_INFINITY;
let known_ms: number | null = null; // since when it is known who is in

/** Chooses nothing by itself where the address says which queries are chosen, even if it says none. */
export function beginChoosing(): void {
    if (new URLSearchParams(location.hash.slice(1)).has('query')) isOver = true;
    app.subscribe(() => {
        if (app.get().chosen.length > 0) isOver = true;
    });
}

/** Whether queries have been chosen since the page was opened, or by its address. */
export const hasChosen = (): boolean => isOver && recording === null;

/** Whether the page has just chosen by itself: who presses a query at that moment wants to see it, not to close it. */
export const hasJustChosen = (): boolean => performance.now() - chosen_ms < SAME_PRESS_MS;

/** Chooses the liveliest query as soon as it is known which one that is. */
export function chooseLiveliest(): void {
    const { page, at_ms, tab, chosen } = app.get();
    if (isOver || page === null || at_ms !== null) return;
    if (chosen.length > 0 || tab === 'ask') {
        isOver = true; // somebody has something else in mind
        return;
    }
    const able = page.queries.filter(canBeChosen);
    if (able.length === 0) return;
    known_ms ??= performance.now();
    const best = able.reduce((one, other) => (isLivelier(other, one) ? other : one));
    const changes = best.changes_per_min ?? 0;
    if (changes === 0 && performance.now() - known_ms < WAITS_MS) return;
    if (changes === 0 && best.members === 0) return;
    isOver = true;
    chosen_ms = performance.now();
    choose(best.name);
    say(`${best.name} is chosen: ${changes > 0 ? 'it changes most' : 'it has most members'}.`);
}

const canBeChosen = (one: QueryState): boolean =>
    one.state === 'registered' && one.members !== null && one.members <= MOST_MEMBERS;

/** What a query is measured by, the first number that differs counts. Groups are no objects, and mark nobody on the map. */
function rankOf({ kind, changes_per_min, members }: QueryState): number[] {
    const [changes, count] = [changes_per_min ?? 0, members ?? 0];
    const marks = kind !== 'aggregate' && changes + count > 0;
    return [marks ? 1 : 0, changes, count];
}

function isLivelier(one: QueryState, other: QueryState): boolean {
    const [mine, others] = [rankOf(one), rankOf(other)];
    const differs = mine.findIndex((value, k) => value !== others[k]);
    return differs >= 0 && mine[differs]! > others[differs]!;
}
