// Times and numbers as people read them: on the clock of the browser's zone, or in UTC, and they say which where there is
// room. What is sent to the server is in UTC.

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

/** By which clock times are shown. */
export type Clock = 'local' | 'utc';

const UTC_NAMES = /^((Etc\/)?(UTC|UCT|GMT([+-]?0)?|Greenwich|Universal|Zulu))$/;
const browserZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
/** The browser's zone, such as Europe/Berlin. */
export const ownZone = UTC_NAMES.test(browserZone) ? 'UTC' : browserZone;

let clock: Clock = 'local';

/** Shows all times by this clock from now on. */
export function showBy(chosen: Clock): void {
    clock = chosen;
}

/** The zone in which times are shown, and in which those that somebody writes are read. */
export const zoneShown = (): string => (clock === 'utc' ? 'UTC' : ownZone);

/** How far the clock is ahead of UTC at a moment. */
const ahead_ms = (ms: number): number => (clock === 'utc' ? 0 : -new Date(ms).getTimezoneOffset() * MINUTE_MS);
const onClock = (ms: number): string => new Date(ms + ahead_ms(ms)).toISOString();

export const sayTime = (ms: number): string => onClock(ms).slice(11, 19);
export const sayDay = (ms: number): string => onClock(ms).slice(0, 10);
export const sayMoment = (ms: number): string => `${sayDay(ms)} ${sayTime(ms)}`;

/** How far the clock is from UTC at a moment: UTC, UTC+2, UTC-3:30. So an hour that comes twice is told apart. */
export function sayZone(ms: number): string {
    const minutes = Math.round(ahead_ms(ms) / MINUTE_MS);
    if (minutes === 0) return 'UTC';
    const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
    return `UTC${minutes < 0 ? '-' : '+'}${hours}${rest === 0 ? '' : `:${String(rest).padStart(2, '0')}`}`;
}

/** 2026-06-20 12:00:00 UTC+2 */
export const sayInstant = (ms: number): string => `${sayMoment(ms)} ${sayZone(ms)}`;

/** The zone of an interval; its name where clocks change in it. */
export const sayZoneOf = (from_ms: number, until_ms: number): string =>
    sayZone(from_ms) === sayZone(until_ms) ? sayZone(until_ms) : zoneShown();

/** From 2026-06-20 12:00:00 to 2026-06-20 13:00:00 UTC+2 */
export function saySpan(from_ms: number, until_ms: number): string {
    const from = sayZone(from_ms) === sayZone(until_ms) ? sayMoment(from_ms) : sayInstant(from_ms);
    return `from ${from} to ${sayInstant(until_ms)}`;
}

const IN_WORDS = /\b(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(\.\d+)? UTC\b/g;

/** Words of the server with their times as the page shows all others; fractions of a second stay. */
export const withShownTimes = (words: string): string =>
    words.replace(IN_WORDS, (_, day: string, time: string, rest = '') => {
        const ms = Date.parse(`${day}T${time}Z`);
        return `${sayMoment(ms)}${rest} ${sayZone(ms)}`;
    });

/** When the day began that a moment is of. */
export function dayOf(ms: number): number {
    if (clock === 'utc') return Math.floor(ms / DAY_MS) * DAY_MS;
    return new Date(ms).setHours(0, 0, 0, 0);
}

/** When the day before that began. */
export const dayBefore = (ms: number): number => dayOf(dayOf(ms) - 1);

/** A day as people name it: today, 2026-06-20; yesterday, 2026-06-19; on 2026-05-01. */
export function sayNamedDay(ms: number, now_ms: number): string {
    const day = dayOf(ms);
    const name = day === dayOf(now_ms) ? 'today,' : day === dayBefore(now_ms) ? 'yesterday,' : 'on';
    return `${name} ${sayDay(ms)}`;
}

/** The moment that somebody wrote: by the clock that is shown, unless it says its zone. NaN: it is none. */
export function momentOf(text: string): number {
    const [day, time = '00:00:00'] = text.trim().replace(' ', 'T').split('T');
    const whole = `${day}T${time}`;
    return clock === 'utc' || SAYS_ZONE.test(whole) ? msOf(whole) : Date.parse(whole);
}

/** A moment as statements and addresses have it, to the second. */
export const isoOf = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`;
const SAYS_ZONE = /[zZ]|[+-]\d\d:?\d\d$/;
/** A moment that statements, addresses or the server have: in UTC, unless it says its zone. */
export const msOf = (text: string): number => Date.parse(SAYS_ZONE.test(text) ? text : `${text}Z`);

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
    now_ms - ms < 2 * DAY_MS ? `${sayDuration(now_ms - ms)} ago` : `of ${sayInstant(ms)}`;
