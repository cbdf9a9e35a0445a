// The way of one object, as the map draws it.
import { getJson, pathOf } from './api';
import { isoOf } from './times';
import type { Place } from './types';

const MOST_FIXES = 5000;

/** The places of an object's fixes between two times. */
export async function askWay(stream: string, object: string, from_ms: number, to_ms: number): Promise<Place[]> {
    const path = pathOf(['page', 'ways', stream], {
        object,
        from: isoOf(from_ms),
        to: isoOf(to_ms),
        limit: MOST_FIXES,
    });
    const { fixes } = await getJson<{ fixes: [number, number, number][] }>(path);
    return fixes.map(([, lon, lat]) => [lon, lat]);
}

/** A way as a line with a point at its end. */
export function wayOf(places: Place[]): GeoJSON.FeatureCollection {
    const properties = { colour: -1 };
    const end = places.at(-1);
    if (end === undefined) return { type: 'FeatureCollection', features: [] };
    const line: GeoJSON.Feature = {
        type: 'Feature',
        properties,
        geometry: { type: 'LineString', coordinates: places },
    };
    const point: GeoJSON.Feature = { type: 'Feature', properties, geometry: { type: 'Point', coordinates: end } };
    return { type: 'FeatureCollection', features: places.length > 1 ? [line, point] : [point] };
}
