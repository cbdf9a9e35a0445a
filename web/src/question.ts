// A question that is being drawn, as all parts of the page see it.
import { Store } from './data/store';
import { FIRST_WISH, type Shape, type Wish } from './data/statement';
import type { Stay } from './data/visits';
import type { Tool } from './map/draw';

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
    ghosts: string; // what is said of the places of the day, which are on the map
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
    ghosts: '',
});
