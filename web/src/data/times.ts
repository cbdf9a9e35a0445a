// Times and numbers as people read them. All times are UTC, and say so where there is room.

export const SECOND_MS = 1000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/** 2 h 05 min, 3 min 20 s, 3 min, 45 s. */
export function sayDuration(ms: number): string {
    const s = Math.round(ms / SECOND_MS);
    if (s < 60) return `${s} s`;
    if (s < 3600) return s % 60 === 0 ? `${s / 60} min` : `${Math.floor(s / 60)} min ${s % 60} s`;
    if (s < 2 * 86400) return `${Math.floor(s / 3600)} h ${String(Math.floor((s % 3600) / 60)).padStart(2, '0')} min`;
    return `${Math.floor(s / 86400)} days ${Math.floor((s % 86400) / 3600)} h`;
}

export const sayTime = (ms: number): string => new Date(ms).toISOString().slice(11, 19);
export const sayDay = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
export const sayMoment = (ms: number): string => `${sayDay(ms)} ${sayTime(ms)}`;

/** A day as people name it: today, 2026-06-20; yesterday, 2026-06-19; on 2026-05-01. */
export function sayNamedDay(ms: number, now_ms: number): string {
    const daysAgo = Math.floor(now_ms / DAY_MS) - Math.floor(ms / DAY_MS);
    const name = ['today,', 'yesterday,'][daysAgo] ?? 'on';
    return `${name} ${sayDay(ms)}`;
}

/** A moment as statements and addresses have it, to the second. */
export const isoOf = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`;
export const msOf = (text: string): number => Date.parse(/[zZ]|[+-]\d\d:?\d\d$/.test(text) ? text : `${text}Z`);

/** 1,234; 12.3; 0.012: as many digits as tell something. */
export function sayNumber(value: number | null | undefined): string {
    if (value === null || value === undefined || Number.isNaN(value)) return '–';
    if (Number.isInteger(value) || Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en');
    return Math.abs(value) >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
}

/** A rate in the unit in which people count it, never as a small part of one: 14 a second, 6 a minute, 2 an hour. */
export function sayRate(per_s: number | null | undefined): string {
    if (per_s === null || per_s === undefined || Number.isNaN(per_s)) return '–';
    if (per_s === 0) return 'none';
    if (per_s >= 1) return `${sayNumber(Math.round(per_s))} a second`;
    const per_min = per_s * 60;
    return per_min >= 1 ? `${Math.round(per_min)} a minute` : `${Math.ceil(per_min * 60)} an hour`;
}

/** How long ago something was; from two days on the moment itself, for replays may be of any year. */
export const sayAgo = (ms: number, now_ms: number): string =>
    now_ms - ms < 2 * DAY_MS ? `${sayDuration(now_ms - ms)} ago` : `of ${sayMoment(ms)} UTC`;
