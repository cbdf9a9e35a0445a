// What the marks on the map and the signs in the lists mean, of those that are there now, and whose data the map shows.
import type { JSX } from 'preact';
import { app, queryOf, type AppState } from '../app';
import { useStore } from '../data/store';
import type { ShapeProperties } from '../data/types';
import { groundOf } from '../map/ground';

const DOT = <circle cx="8" cy="8" r="3.5" />;
const AREA = <rect class="area" x="2" y="3" width="12" height="10" />;
const MARKS = {
    object: ['object', DOT],
    moving: ['moves this way', <path d="M8 1.5 12.6 13.4 8 10.7 3.4 13.4z" />],
    member: ['in a chosen answer', <circle class="chosen" cx="8" cy="8" r="5.5" />],
    focal: [
        'a region goes with it',
        <>
            {DOT}
            <circle class="ring" cx="8" cy="8" r="6.5" />
        </>,
    ],
    centre: [
        'nearest to here',
        <>
            <circle class="chosen" cx="8" cy="8" r="2.2" />
            <circle class="ring" cx="8" cy="8" r="6" />
        </>,
    ],
    region: ['region', AREA],
    partner: ['feature in the answer', AREA],
} as const satisfies Record<string, [string, JSX.Element]>;
const SIGNS: [string, string, string][] = [
    ['+', 'plus', 'came in'],
    ['−', 'minus', 'left'],
    ['0', 'zero', 'told again, still in'],
];
type Mark = keyof typeof MARKS;

/** The marks that queries which are chosen put on the map. */
function marksOfQueries({ chosen }: AppState): Set<Mark> {
    const marks = new Set<Mark>();
    for (const one of chosen) {
        if (one.members.length > 0 && queryOf(one.name)?.kind !== 'aggregate') marks.add('member');
        for (const { properties, geometry } of one.shapes?.features ?? []) {
            if (properties.follows !== null) marks.add('focal');
            const isRinged = properties.role === 'centre' && properties.follows !== null; // no point of its own
            if (geometry !== null && !isRinged) marks.add(markOf(properties));
        }
    }
    return marks;
}

function markOf({ role }: ShapeProperties): Mark {
    if (role === 'centre' || role === 'partner') return role;
    return 'region';
}

/** The marks that are on the map now, in the order of the legend, as one text: it changes with them alone. */
function marksOf(state: AppState): string {
    const { page, hidden, drawing } = state;
    const marks = marksOfQueries(state);
    const shown = (page?.streams ?? []).filter((one) => !hidden.includes(`stream:${one.name}`));
    if (shown.some((one) => (one.objects ?? 0) > 0)) marks.add('object');
    if (drawing.hasArrows) marks.add('moving');
    return Object.keys(MARKS)
        .filter((one) => marks.has(one as Mark))
        .join(' ');
}

/** Whose data is on the map, each once, in the order in which it lies there. */
function creditsOf({ page, hidden, drawing }: AppState): string {
    if (page === null) return '';
    const ground = groundOf(page);
    const layers = page.layers.filter((one) => !hidden.includes(`layer:${one.name}`)).map((one) => one.attribution);
    const fails = drawing.tilesFail ? ' (tiles do not come)' : '';
    const below = { plain: null, world: 'Natural Earth', tiles: '' }[ground.kind];
    const all = [ground.kind === 'tiles' ? ground.attribution + fails : below, ...layers];
    return [...new Set(all.filter((one) => one !== null))].join(', ');
}

export function Legend(): JSX.Element {
    const marks = useStore(app, marksOf);
    const credits = useStore(app, creditsOf);
    const hasSigns = useStore(app, (one) => one.chosen.length > 0);
    return (
        <footer class="legend" aria-label="Legend">
            {marks
                .split(' ')
                .filter((one) => one in MARKS)
                .map((one) => MARKS[one as Mark])
                .map(([words, mark]) => (
                    <span key={words}>
                        <svg viewBox="0 0 16 16" aria-hidden="true">
                            {mark}
                        </svg>
                        {words}
                    </span>
                ))}
            {(hasSigns ? SIGNS : []).map(([sign, name, words]) => (
                <span key={sign}>
                    <b class={name}>{sign}</b> {words}
                </span>
            ))}
            {credits === '' ? null : <span class="attribution">{credits}</span>}
        </footer>
    );
}
