// Notifications of the browser about queries that are chosen, while the page is open.
import { Store } from './data/store';
import type { Change } from './data/types';

const EVERY_MS = 5000; // at most one notification in this time, whatever changed meanwhile
const MOST_NAMED = 3;

interface Notices {
    wanted: string[]; // names of queries
    refused: string; // why there are none
}

export const notices = new Store<Notices>({ wanted: [], refused: '' });

const waiting = new Map<string, Change[]>();
let told_ms = Number.NEGATIVE_INFINITY;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Notifies of the changes of a query from now on, if the browser allows it; else `refused` says why not. */
export async function wantNotices(name: string): Promise<void> {
    if (typeof Notification === 'undefined')
        return notices.set({ refused: 'This browser has no notifications here: they need https, or this machine.' });
    if ((await Notification.requestPermission()) !== 'granted')
        return notices.set({
            refused: 'The browser does not allow this page to notify: its settings of the site say so.',
        });
    const { wanted } = notices.get();
    notices.set({ wanted: wanted.includes(name) ? wanted : [...wanted, name], refused: '' });
}

export function forgetNotices(name: string): void {
    waiting.delete(name);
    if (notices.get().wanted.includes(name))
        notices.set({ wanted: notices.get().wanted.filter((one) => one !== name) });
}

/** Takes what has changed in a query: it is told at once, or with what else changes in the next seconds. */
export function noteChanges(name: string, changes: Change[]): void {
    if (!notices.get().wanted.includes(name)) return;
    waiting.set(name, [...(waiting.get(name) ?? []), ...changes]);
    timer ??= setTimeout(tell, Math.max(0, told_ms + EVERY_MS - performance.now()));
}

function tell(): void {
    timer = undefined;
    if (waiting.size === 0) return;
    told_ms = performance.now();
    const lines = [...waiting].map(([name, changes]) => `${name}: ${sayChanges(changes)}`);
    const title = waiting.size === 1 ? [...waiting.keys()][0]! : `${waiting.size} queries changed`;
    waiting.clear();
    try {
        new Notification(title, { body: lines.join('\n'), tag: 'fairway' });
    } catch {
        notices.set({ wanted: [], refused: 'This browser shows no notifications of a page, as most phones do not.' });
    }
}

/** Who came in and who left, by name where there are few. */
export function sayChanges(changes: Change[]): string {
    const said = [
        [1, 'came in'],
        [-1, 'left'],
        [0, 'told'],
    ].map(([sign, verb]) => {
        const who = [...new Set(changes.filter((one) => one.sign === sign).map((one) => one.object || 'all'))];
        if (who.length === 0) return '';
        return who.length > MOST_NAMED ? `${who.length} ${verb}` : `${who.join(', ')} ${verb}`;
    });
    return said.filter((one) => one !== '').join('; ');
}
