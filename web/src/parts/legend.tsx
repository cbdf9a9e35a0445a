// What the marks on the map and the signs in the lists mean, and whose data the map shows.
import type { JSX } from 'preact';
import { app } from '../app';
import { useStore } from '../data/store';

const DOT = <circle cx="8" cy="8" r="3.5" />;
const MARKS: [string, JSX.Element][] = [
    ['object', DOT],
    ['in a chosen answer', <circle class="chosen" cx="8" cy="8" r="5.5" />],
    [
        'a region goes with it',
        <>
            {DOT}
            <circle class="ring" cx="8" cy="8" r="6.5" />
        </>,
    ],
    [
        'nearest to here',
        <>
            <circle class="chosen" cx="8" cy="8" r="2.2" />
            <circle class="ring" cx="8" cy="8" r="6" />
        </>,
    ],
    ['region, or feature in the answer', <rect class="area" x="2" y="3" width="12" height="10" />],
];
const SIGNS: [string, string, string][] = [
    ['+', 'plus', 'came in'],
    ['−', 'minus', 'left'],
    ['0', 'zero', 'told again, still in'],
];

/** Sources that want to be named wherever their layers are shown; each once. */
function useAttributions(): string[] {
    const layers = useStore(app, (one) => one.page?.layers);
    const hidden = useStore(app, (one) => one.hidden);
    const shown = (layers ?? []).filter((one) => !hidden.includes(`layer:${one.name}`));
    return [...new Set(shown.map((one) => one.attribution).filter((one) => one !== null))];
}

export function Legend(): JSX.Element {
    const attributions = useAttributions();
    return (
        <footer class="legend" aria-label="Legend">
            {MARKS.map(([words, mark]) => (
                <span key={words}>
                    <svg viewBox="0 0 16 16" aria-hidden="true">
                        {mark}
                    </svg>
                    {words}
                </span>
            ))}
            {SIGNS.map(([sign, name, words]) => (
                <span key={sign}>
                    <b class={name}>{sign}</b> {words}
                </span>
            ))}
            {attributions.length === 0 ? null : <span class="attribution">{attributions.join(', ')}</span>}
        </footer>
    );
}
