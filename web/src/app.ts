// What the page knows at a moment, for all of its parts.
import type { Clicked, ClickedFeature, Drawing, MapView } from './map/view';
import type { Theme } from './map/colours';
import type { Followed } from './data/follow';
import type { Change, ChangesBefore, Member, PageState, Shapes } from './data/types';
import { Store } from './data/store';
import { type Clock, showBy } from './data/times';

export type Tab = 'queries' | 'ask' | 'server';
export type Connection = 'loading' | 'ok' | 'lost' | 'token';

/** A query that is chosen: who is in, what came and went, since it was chosen. */
export interface Chosen {
    name: string;
    colour: number; // its letter and colour; it keeps them while it is chosen
    state: Followed | 'loading';
    words: string;
    members: Member[];
    changes: Change[]; // the newest first
    before: ChangesBefore | null; // of the moment of the past that is looked at; null: not known
    entered: number;
    left: number;
    series: [number[], number[]]; // seconds, members
    shapes: Shapes | null;
    isAnswered: boolean; // who was in when it was chosen is known
    refused: string; // why there are no members
    news: string; // what has just become of it; it was registered
}

export interface AppState {
    connection: Connection;
    words: string; // what went wrong
    seen_ms: number | null; // when the server last answered
    page: PageState | null;
    theme: Theme;
    clock: Clock; // by which times are shown
    tab: Tab;
    chosen: Chosen[];
    object: Clicked | null;
    feature: ClickedFeature | null;
    at_ms: number | null; // a moment of the past; null: now
    unknownPast: string[]; // of which streams that moment is not known, and why
    hidden: string[]; // streams and layers that are not shown, as stream:NAME and layer:NAME
    showsIndex: boolean;
    drawing: Drawing; // how the map shows it
    said: string; // for screen readers
}

export const MOST_CHOSEN = 4;

function firstTheme(): Theme {
    const kept = localStorage.getItem('fairway-theme');
    if (kept === 'light' || kept === 'dark') return kept;
    return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
}

function firstClock(): Clock {
    const kept = localStorage.getItem('fairway-clock') === 'utc' ? 'utc' : 'local';
    showBy(kept);
    return kept;
}

export const app = new Store<AppState>({
    connection: 'loading',
    words: '',
    seen_ms: null,
    page: null,
    theme: firstTheme(),
    clock: firstClock(),
    tab: 'queries',
    chosen: [],
    object: null,
    feature: null,
    at_ms: null,
    unknownPast: [],
    hidden: [],
    showsIndex: false,
    drawing: { hasArrows: false, tilesFail: false },
    said: '',
});

/**
 * The map, once it is there; of each stream on it the time of the newest fix, and up to when, by the machine's clock,
 * what had come is on it.
 */
export const place: { view: MapView | null; latest: Map<string, number>; mapped: Map<string, number> } = {
    view: null,
    latest: new Map(),
    mapped: new Map(),
};

export const say = (said: string): void => app.set({ said });
export const streamOf = (name: string): PageState['streams'][number] | undefined =>
    app.get().page?.streams.find((one) => one.name === name);
export const queryOf = (name: string): PageState['queries'][number] | undefined =>
    app.get().page?.queries.find((one) => one.name === name);
export const isHidden = (what: string): boolean => app.get().hidden.includes(what);

/** The newest time that the page knows of, of a stream or of all: the clock of what is shown, which may be a replay. */
export function latest_ms(stream?: string): number | null {
    const streams = (app.get().page?.streams ?? []).filter((one) => stream === undefined || one.name === stream);
    const told = streams.map((one) => (one.latest_event_ts === null ? Number.NaN : Date.parse(one.latest_event_ts)));
    const seen = streams.map((one) => place.latest.get(one.name) ?? Number.NaN);
    const times = [...told, ...seen].filter((ms) => !Number.isNaN(ms));
    return times.length === 0 ? null : Math.max(...times);
}

export function setTheme(theme: Theme): void {
    localStorage.setItem('fairway-theme', theme);
    document.documentElement.dataset['theme'] = theme;
    app.set({ theme });
}

export function setClock(clock: Clock): void {
    localStorage.setItem('fairway-clock', clock);
    showBy(clock);
    app.set({ clock });
}
