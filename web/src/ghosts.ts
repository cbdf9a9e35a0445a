// Places of the day that is asked about, pale below the drawing: where things were, also without a base map.
import { app, place } from './app';
import { getJson, isAborted, pathOf, wordsOf } from './data/api';
import { isoOf } from './data/times';
import type { Place } from './data/types';
import { asking, type Period } from './question';
import { answeredUntil_ms, intervalOf } from './told';

const MOST = 3000;
const DAYS: Period[] = ['newest', 'before']; // the other periods end now: objects are on the map

interface Sample {
    count: number;
    places: Place[];
}

let shown = '';
let running = new AbortController();

/** Shows and hides them as Ask is opened and left, and as another day or stream is chosen. */
export function followDay(): void {
    app.subscribe(renew);
    asking.subscribe(renew);
}

/** What is to be shown: stream and day; '' for nothing. */
function wantedOf(): string {
    const { stream, period } = asking.get();
    const isWanted = app.get().tab === 'ask' && stream !== '' && DAYS.includes(period);
    if (!isWanted) return '';
    const [from_ms] = intervalOf(period, answeredUntil_ms(stream));
    return JSON.stringify([stream, from_ms, period]);
}

function renew(): void {
    const wanted = wantedOf();
    if (wanted === shown || place.view === null) return;
    shown = wanted;
    running.abort();
    put([], '');
    if (wanted !== '') void show();
}

async function show(): Promise<void> {
    const { stream, period } = asking.get();
    const [from_ms, to_ms] = intervalOf(period, answeredUntil_ms(stream));
    running = new AbortController();
    const path = pathOf(['page', 'places', stream], { from: isoOf(from_ms), to: isoOf(to_ms), limit: MOST });
    try {
        const { count, places } = await getJson<Sample>(path, running.signal);
        put(places, sayGhosts(places.length, count));
    } catch (error) {
        if (!isAborted(error)) put([], `Its places cannot be shown: ${wordsOf(error)}`);
    }
}

function sayGhosts(sampled: number, count: number): string {
    if (count === 0) return '';
    const some = sampled === count ? 'all' : `${sampled.toLocaleString('en')} of`;
    return `Pale on the map: ${some} ${count.toLocaleString('en')} places of that day.`;
}

function put(places: Place[], ghosts: string): void {
    const geometry: GeoJSON.MultiPoint = { type: 'MultiPoint', coordinates: places };
    const features: GeoJSON.Feature[] = places.length === 0 ? [] : [{ type: 'Feature', properties: {}, geometry }];
    place.view?.showStill('ghosts', { type: 'FeatureCollection', features });
    if (asking.get().ghosts !== ghosts) asking.set({ ghosts });
}
