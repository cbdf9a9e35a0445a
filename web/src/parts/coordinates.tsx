// Where the pointer is, as statements write it; without a pointer, the middle of the map. It can be copied.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Map as LibreMap, MapMouseEvent } from 'maplibre-gl';
import { app, place, say } from '../app';
import { spaceAt, Writer } from '../data/space';
import { useStore } from '../data/store';
import type { Place } from '../data/types';

const COPIED_MS = 1500;
const FIELDS = 'input, textarea, select';

const middleOf = (map: LibreMap): Place => [map.getCenter().lng, map.getCenter().lat];

/** The place under the pointer, null while it is not over the map, and the middle of the map. */
function usePlaces(): { pointer: Place | null; middle: Place | null } {
    const [pointer, setPointer] = useState<Place | null>(null);
    const [middle, setMiddle] = useState<Place | null>(null);
    useEffect(() => {
        const map = place.view?.map;
        if (map === undefined) return undefined; // a browser without a map
        const follow = ({ lngLat }: MapMouseEvent): void => setPointer([lngLat.lng, lngLat.lat]);
        const leave = (): void => setPointer(null);
        const rest = (): void => setMiddle(middleOf(map));
        const followed = [map.on('mousemove', follow), map.on('mouseout', leave), map.on('moveend', rest)];
        rest();
        return () => followed.forEach((one) => one.unsubscribe());
    }, []);
    return { pointer, middle };
}

/** What copies a text, and whether it was copied just now. */
function useCopy(text: string): [copy: () => void, words: string] {
    const [words, setWords] = useState('');
    const copy = (): void => {
        const tell = (told: string): void => {
            setWords(told);
            say(`${text} ${told}`);
            setTimeout(() => setWords(''), COPIED_MS);
        };
        // Browsers have no clipboard for pages that come over a network without encryption.
        const copied = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error());
        copied.then(
            () => tell('copied'),
            () => tell('cannot be copied by this browser'),
        );
    };
    return [copy, words];
}

/** Copies by the key C while the pointer or the focus is on the map. */
function useKey(copy: () => void, isPointing: boolean): void {
    useEffect(() => {
        const onKey = (event: KeyboardEvent): void => {
            const isOther = event.ctrlKey || event.metaKey || event.altKey || event.key.toLowerCase() !== 'c';
            const target = event.target as Element;
            const isOnMap = target.closest('#map') !== null || (isPointing && target.closest(FIELDS) === null);
            if (!isOther && isOnMap) copy();
        };
        addEventListener('keydown', onKey);
        return () => removeEventListener('keydown', onKey);
    });
}

export function Coordinates(): JSX.Element | null {
    const { pointer, middle } = usePlaces();
    const streams = useStore(app, (one) => one.page?.streams) ?? [];
    const at = pointer ?? middle ?? [0, 0];
    const space = spaceAt(
        at,
        streams.map((one) => one.space),
    );
    const text = new Writer(space).coordinates(at).join(', ');
    const [copy, words] = useCopy(text);
    useKey(copy, pointer !== null);
    if (middle === null) return null;
    const names = space.kind === 'globe' ? 'lon, lat' : 'x, y';
    return (
        <button class="coordinates" onClick={copy} title="Copy it: a click here, or the key C over the map">
            <span class="quiet">{words || `${pointer === null ? 'middle ' : ''}${names}`}</span> {text}
        </button>
    );
}
