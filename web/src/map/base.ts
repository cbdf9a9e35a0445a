// The base map: the home's own layers as vector tiles. No glyphs, no pictures, nothing from elsewhere.
import type { LayerSpecification, StyleSpecification, VectorSourceSpecification } from 'maplibre-gl';
import type { LayerState } from '../data/types';
import { recordedReply, recording } from '../data/recorded';
import { MAP_COLOURS, type Theme } from './colours';

const RECORDED = 'recorded'; // in the place of http, in a report

/** A tile of a report; one that was not recorded is empty. */
export async function recordedTile(url: string): Promise<{ data: ArrayBuffer }> {
    const reply = await recordedReply(url.slice(RECORDED.length + 2));
    return { data: reply === null ? new ArrayBuffer(0) : await reply.arrayBuffer() };
}

const WATER = ['water', 'sea', 'lake', 'river', 'ocean'];
const GREEN = ['park', 'forest', 'wood', 'garden', 'protected', 'meadow', 'grass'];
const BUILDING = ['building'];
const ROAD = ['road', 'street', 'highway'];
const RAIL = ['railway', 'rail', 'tram'];
const MOST_ZOOM = 16;

type Paint = Record<string, unknown>;
type Filter = ['all', ...unknown[]];

const isKind = (kinds: string[]): unknown => ['in', ['get', 'kind'], ['literal', kinds]];
const isOf = (type: 'Polygon' | 'LineString' | 'Point'): unknown => ['==', ['geometry-type'], type];

function sourceOf(layer: LayerState): VectorSourceSpecification {
    const path = `/tiles/${encodeURIComponent(layer.name)}/{z}/{x}/{y}.mvt?v=${layer.version}`;
    if (recording === null) return { type: 'vector', tiles: [location.origin + path], minzoom: 0, maxzoom: MOST_ZOOM };
    return { type: 'vector', tiles: [`${RECORDED}:/${path}`], minzoom: 0, maxzoom: layer.recorded_zoom ?? 0 };
}

/** What is drawn of each layer, from the lowest to the highest. */
function drawings(theme: Theme): { id: string; type: LayerSpecification['type']; filter: Filter; paint: Paint }[] {
    const colours = MAP_COLOURS[theme];
    const known = [...WATER, ...GREEN, ...BUILDING, ...ROAD, ...RAIL];
    const width = (least: number, most: number): unknown => [
        'interpolate',
        ['exponential', 1.6],
        ['zoom'],
        10,
        least,
        18,
        most,
    ];
    const area = (kinds: string[]): Filter => ['all', isOf('Polygon'), isKind(kinds)];
    const line = (kinds: string[]): Filter => ['all', isOf('LineString'), isKind(kinds)];
    return [
        { id: 'green', type: 'fill', filter: area(GREEN), paint: { 'fill-color': colours.green } },
        { id: 'water', type: 'fill', filter: area(WATER), paint: { 'fill-color': colours.water } },
        {
            id: 'river',
            type: 'line',
            filter: line(WATER),
            paint: { 'line-color': colours.water, 'line-width': width(0.6, 8) },
        },
        { id: 'building', type: 'fill', filter: area(BUILDING), paint: { 'fill-color': colours.building } },
        {
            id: 'other',
            type: 'line',
            filter: ['all', ['!', isKind(known)], ['!', isOf('Point')]],
            paint: { 'line-color': colours.other, 'line-width': 1.2 },
        },
        {
            id: 'edge',
            type: 'line',
            filter: line(ROAD),
            paint: { 'line-color': colours.roadEdge, 'line-width': width(1, 17) },
        },
        {
            id: 'road',
            type: 'line',
            filter: line(ROAD),
            paint: { 'line-color': colours.road, 'line-width': width(0.6, 14) },
        },
        {
            id: 'rail',
            type: 'line',
            filter: line(RAIL),
            paint: { 'line-color': colours.rail, 'line-width': width(0.6, 3) },
        },
        {
            id: 'point',
            type: 'circle',
            filter: ['all', isOf('Point')],
            paint: { 'circle-color': colours.point, 'circle-radius': width(0.8, 5), 'circle-opacity': 0.85 },
        },
    ];
}

/** The style of the base map for the layers that are shown; all areas lie below all lines, of whatever layer. */
export function styleOf(layers: LayerState[], theme: Theme): StyleSpecification {
    const background: LayerSpecification = {
        id: 'land',
        type: 'background',
        paint: { 'background-color': MAP_COLOURS[theme].land },
    };
    const drawn = drawings(theme).flatMap(({ id, ...how }) =>
        layers.map(
            (layer) =>
                ({
                    id: `${id}:${layer.name}`,
                    source: layer.name,
                    'source-layer': 'features',
                    ...how,
                }) as LayerSpecification,
        ),
    );
    return {
        version: 8,
        sources: Object.fromEntries(layers.map((layer) => [layer.name, sourceOf(layer)])),
        layers: [background, ...drawn],
        transition: { duration: 0, delay: 0 },
    };
}
