// Visits as people count them: those that days cut are one again, and how many were in at each time.
import { msOf } from './times';
import type { Visit } from './types';

export interface Stay {
    object: string;
    partner: string | null;
    from_ms: number;
    to_ms: number; // of who is still in: the end of the interval
    isOpen: boolean;
    value: number | null;
    place: [number, number] | null;
}

/** Names a stay: the same one in two answers has the same. */
export const keyOf = (one: Stay): string => JSON.stringify([one.object, one.partner, one.from_ms]);

/** Stays of visits in an interval, the longest first. */
export function staysOf(visits: Visit[], until_ms: number): Stay[] {
    const sorted = visits.map((one) => ({ stay: stayOf(one, until_ms), visit: one }));
    sorted.sort((a, b) => a.stay.from_ms - b.stay.from_ms);
    const open = new Map<string, Stay>();
    const stays: Stay[] = [];
    for (const { stay, visit } of sorted) {
        const key = JSON.stringify([stay.object, stay.partner]);
        const before = open.get(key);
        if (visit.cause_in === 'day' && before !== undefined && before.to_ms >= stay.from_ms) {
            Object.assign(before, { to_ms: stay.to_ms, isOpen: stay.isOpen });
        } else {
            stays.push(stay);
            open.set(key, stay);
        }
    }
    return stays.sort((a, b) => b.to_ms - b.from_ms - (a.to_ms - a.from_ms));
}

function stayOf(visit: Visit, until_ms: number): Stay {
    const from_ms = msOf(visit.from_ts);
    const to_ms = visit.to_ts === null ? Math.max(until_ms, from_ms) : msOf(visit.to_ts);
    const place = visit.lon == null || visit.lat == null ? null : ([visit.lon, visit.lat] as [number, number]);
    const { object, partner } = visit;
    return { object, partner, from_ms, to_ms, isOpen: visit.to_ts === null, value: visit.value ?? null, place };
}

/** How many were in: times, and how many from each time on. */
export function countsOf(stays: Stay[], from_ms: number, until_ms: number): [number[], number[]] {
    const steps = new Map<number, number>([
        [from_ms, 0],
        [until_ms, 0],
    ]);
    const add = (ms: number, by: number): void => void steps.set(ms, (steps.get(ms) ?? 0) + by);
    for (const one of stays) {
        add(Math.max(one.from_ms, from_ms), 1);
        if (!one.isOpen && one.to_ms <= until_ms) add(one.to_ms, -1);
    }
    const times = [...steps.keys()].sort((a, b) => a - b);
    let n = 0;
    return [times, times.map((ms) => (n += steps.get(ms)!))];
}
