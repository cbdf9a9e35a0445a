// The base map: the home's own layers as vector tiles, above the ground. No glyphs, no pictures.
import type { LayerSpecification, StyleSpecification, VectorSourceSpecification } from 'maplibre-gl';
import type { LayerState } from '../data/types';
import { recordedReply, recording } from '../data/recorded';
import { MAP_COLOURS, type Theme } from './colours';
import type { GroundStyle } from './ground';

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
    const path = `/page/tiles/${encodeURIComponent(layer.name)}/{z}/{x}/{y}.mvt?v=${layer.version}`;
    if (recording === null) return { type: 'vector', tiles: [location.origin + path], minzoom: 0, maxzoom: MOST_ZOOM };
    return { type: 'vector', tiles: [`${RECORDED}:/${path}`], minzoom: 0, maxzoom: layer.recorded_zoom ?? 0 };
}

interface Drawn {
    id: string;
    type: LayerSpecification['type'];
    filter: Filter;
    paint: Paint;
}

/** A width that grows with the scale: pixels at zoom 10, and at zoom 18. */
const widthOf = (least: number, most: number): unknown => {
    return ['interpolate', ['exponential', 1.6], ['zoom'], 10, least, 18, most];
};

function area(id: string, kinds: string[], colour: string): Drawn {
    const filter: Filter = ['all', isOf('Polygon'), isKind(kinds)];
    return { id, type: 'fill', filter, paint: { 'fill-color': colour } };
}

function line(id: string, kinds: string[], colour: string, width: unknown): Drawn {
    const filter: Filter = ['all', isOf('LineString'), isKind(kinds)];
    return { id, type: 'line', filter, paint: { 'line-color': colour, 'line-width': width } };
}

/** Outlines of what is of no kind that has a look of its own. */
function others(colour: string): Drawn {
    const known = [...WATER, ...GREEN, ...BUILDING, ...ROAD, ...RAIL];
    const filter: Filter = ['all', ['!', isKind(known)], ['!', isOf('Point')]];
    return { id: 'other', type: 'line', filter, paint: { 'line-color': colour, 'line-width': 1.2 } };
}

function points(colour: string): Drawn {
    const paint = { 'circle-color': colour, 'circle-radius': widthOf(0.8, 5), 'circle-opacity': 0.85 };
    return { id: 'point', type: 'circle', filter: ['all', isOf('Point')], paint };
}

/** What is drawn of each layer, from the lowest to the highest. */
function drawings(theme: Theme): Drawn[] {
    const colours = MAP_COLOURS[theme];
    return [
        area('green', GREEN, colours.green),
        area('water', WATER, colours.water),
        line('river', WATER, colours.water, widthOf(0.6, 8)),
        area('building', BUILDING, colours.building),
        others(colours.other),
        line('edge', ROAD, colours.roadEdge, widthOf(1, 17)),
        line('road', ROAD, colours.road, widthOf(0.6, 14)),
        line('rail', RAIL, colours.rail, widthOf(0.6, 3)),
        points(colours.point),
    ];
}

/** Begins the names of the sources of layers, whatever these are called. */
export const LAYER = 'layer:';

/** The style of the map: the ground, and the layers that are shown; all areas lie below all lines, of whatever layer. */
export function styleOf(layers: LayerState[], theme: Theme, ground: GroundStyle): StyleSpecification {
    const drawn = drawings(theme).flatMap(({ id, ...how }) =>
        layers.map(
            (layer) =>
                ({
                    id: `${id}:${layer.name}`,
                    source: LAYER + layer.name,
                    'source-layer': 'features',
                    ...how,
                }) as LayerSpecification,
        ),
    );
    return {
        version: 8,
        sources: {
            ...ground.sources,
            ...Object.fromEntries(layers.map((layer) => [LAYER + layer.name, sourceOf(layer)])),
        },
        layers: [...ground.layers, ...drawn],
        transition: { duration: 0, delay: 0 },
    };
}
