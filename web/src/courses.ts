// How many were in the answers of all queries over the last hour, asked for while somebody looks at their list.
import { app, queryOf } from './app';
import { getJson } from './data/api';
import { recording } from './data/recorded';
import { Store } from './data/store';

export type Counts = (number | null)[];

interface StreamCourse {
    until: string;
    known: number; // so many of the minutes, from the last one back
    queries: Record<string, Counts>; // those that changed
}

interface Courses {
    minutes: number;
    streams: Record<string, StreamCourse>;
}

export const courses = new Store<Courses>({ minutes: 60, streams: {} });

export async function askCourses(): Promise<void> {
    if (recording !== null || app.get().tab !== 'queries' || document.hidden) return;
    courses.set(await getJson<Courses>('/page/courses'));
}

/** How many were in the answer of a query, minute by minute up to now; null: nothing is known of it. */
export function countsOf({ minutes, streams }: Courses, name: string): Counts | null {
    const query = queryOf(name);
    const course = query === undefined ? undefined : streams[query.stream];
    if (query === undefined || course === undefined || course.known === 0) return null;
    const told = course.queries[name];
    if (told !== undefined) return told;
    if (query.members === null) return null;
    const isKnown = (k: number): boolean => k >= minutes - course.known;
    return Array.from({ length: minutes }, (_, k) => (isKnown(k) ? query.members : null)); // nothing has changed
}
