// What is the matter with streams, in one short line of the header that leads to the Server tab.
import type { JSX } from 'preact';
import { app } from '../app';
import { useStore } from '../data/store';
import { sayDuration, sayNumber } from '../data/times';
import type { PageState, StreamState } from '../data/types';

const BEHIND_S = 5; // an engine that keeps up is behind for shorter than that
const BROKEN = ['failed', 'dead', 'unreadable'];

function troublesOf(stream: StreamState): string[] {
    const { name, state, lag_s, lag_segments, warnings, late, fixes } = stream;
    const said: string[] = [];
    if (BROKEN.includes(state)) said.push(`${name}: ${state}`);
    if ((lag_segments ?? 0) > 0 && (lag_s ?? 0) >= BEHIND_S)
        said.push(`${name} is ${sayDuration(lag_s! * 1000)} behind (${sayNumber(lag_segments)} segments)`);
    if (warnings?.length && late !== undefined && fixes !== undefined)
        said.push(`${name}: ${sayNumber(late)} of ${sayNumber(fixes)} fixes came too late`);
    return said;
}

/** Which streams do not run, are behind, or get many late fixes; nothing where all are well. */
export function allTroubles(page: PageState): string[] {
    const broken = Object.keys(page.broken_streams).map((name) => `${name}: its settings cannot be read`);
    return [...broken, ...page.streams.flatMap(troublesOf)];
}

export function Behind({ page }: { page: PageState }): JSX.Element | null {
    const isNow = useStore(app, (one) => one.at_ms === null);
    const all = allTroubles(page);
    if (!isNow || all.length === 0) return null;
    const more = all.length === 1 ? '' : ` and ${all.length - 1} more`;
    return (
        <>
            {' · '}
            <button class="link trouble" title={all.join('\n')} onClick={() => app.set({ tab: 'server' })}>
                {all[0]}
                {more}
            </button>
        </>
    );
}
