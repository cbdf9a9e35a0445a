// Objects that move, drawn by the graphics card from arrays of numbers: nothing is made for each object.
import { COORDINATE_SYSTEM, type Layer } from '@deck.gl/core';
import { PolygonLayer, ScatterplotLayer } from '@deck.gl/layers';
import type { Objects } from '../data/live';
import type { Box, Place } from '../data/types';
import { DotsLayer } from './dots';
import { MAP_COLOURS, QUERY_COLOURS, rgbOf, type Rgb, type Theme } from './colours';

/** Members of a query that is chosen, as indexes of objects, and its regions that go with objects. */
export interface Marked {
    query: string;
    colour: number; // which of the colours of queries
    stream: string;
    members: string[];
    moving: { ring: Place[]; follows: string; at: Place }[];
    focals: string[]; // objects that others are measured from
}

interface Look {
    theme: Theme;
    selected: { stream: string; name: string } | null;
    marked: Marked[];
    hasArrows: boolean; // whoever moves is an arrow head
}

const SMALL_PX = 3;
const MEMBER_PX = 5.5;
const ARROW_PX = 7;
const MEMBER_ARROW_PX = 9;
const MANY = 20_000; // from here on objects are small points
const MOST_ARROWS = 3000; // in sight
const CELL_PX = 40;
const MOST_IN_CELL = 5; // on average, of cells where objects are

/** Whether so few objects are in sight, and so far from each other, that arrow heads can be told apart. */
export function hasRoomForArrows(streams: Iterable<Objects>, sight: Box, width_px: number, height_px: number): boolean {
    const [west, south, east, north] = sight;
    const columns = Math.ceil(width_px / CELL_PX);
    const rows = Math.ceil(height_px / CELL_PX);
    const isTaken = new Uint8Array((columns + 1) * (rows + 1));
    let count = 0;
    let cells = 0;
    for (const { shown, count: known } of streams) {
        for (let at = 0; at < 2 * known; at += 2) {
            const right = (shown[at]! - west) / (east - west);
            const up = (shown[at + 1]! - south) / (north - south); // nearly: the map is no plane
            if (!(right >= 0 && right <= 1 && up >= 0 && up <= 1)) continue;
            const cell = Math.floor(up * rows) * columns + Math.floor(right * columns);
            count += 1;
            cells += 1 - isTaken[cell]!;
            isTaken[cell] = 1;
        }
    }
    return count <= MOST_ARROWS && count <= MOST_IN_CELL * cells;
}

/** Rings around objects: few, and each an instance. */
function rings(id: string, positions: Float64Array, count: number, colour: Rgb, radius: number, width: number): Layer {
    return new ScatterplotLayer({
        id,
        data: { length: count, attributes: { getPosition: { value: positions, size: 2 } } },
        coordinateSystem: COORDINATE_SYSTEM.LNGLAT,
        radiusUnits: 'pixels',
        lineWidthUnits: 'pixels',
        getRadius: radius,
        getLineColor: colour,
        getLineWidth: width,
        stroked: true,
        filled: false,
    });
}

/** What a layer of dots is made of; without directions all are dots. */
function dotsOf(
    count: number,
    positions: Float64Array<ArrayBufferLike>,
    directions: Float32Array<ArrayBufferLike> | null,
) {
    const getPosition = { value: positions, size: 2 };
    const attributes = directions === null ? {} : { getDirection: { value: directions, size: 1 } };
    return { length: count, attributes: { getPosition, ...attributes } };
}

function objectsLayer(stream: string, objects: Objects, look: Look): Layer {
    const colours = MAP_COLOURS[look.theme];
    const isMany = objects.count > MANY && !look.hasArrows;
    return new DotsLayer({
        id: `objects:${stream}`,
        data: dotsOf(objects.count, objects.shown, look.hasArrows ? objects.direction : null),
        coordinateSystem: COORDINATE_SYSTEM.LNGLAT,
        radius_px: isMany ? 1.6 : SMALL_PX,
        arrow_px: ARROW_PX,
        fill: rgbOf(colours.object),
        edge: rgbOf(colours.objectEdge),
        edge_px: isMany ? 0 : 0.75,
    });
}

interface Placed {
    positions: Float64Array;
    directions: Float32Array;
    count: number;
}

function placesOf(objects: Objects, names: string[]): Placed {
    const positions = new Float64Array(2 * names.length);
    const directions = new Float32Array(names.length);
    let count = 0;
    for (const name of names) {
        const place = objects.placeOf(name);
        if (place === null) continue;
        positions.set(place, 2 * count);
        directions[count] = objects.directionOf(name);
        count += 1;
    }
    return { positions, directions, count };
}

function membersLayer(marked: Marked, objects: Objects, look: Look): Layer {
    const { positions, directions, count } = placesOf(objects, marked.members);
    return new DotsLayer({
        id: `members:${marked.query}`,
        data: dotsOf(count, positions, look.hasArrows ? directions : null),
        coordinateSystem: COORDINATE_SYSTEM.LNGLAT,
        radius_px: MEMBER_PX,
        arrow_px: MEMBER_ARROW_PX,
        fill: rgbOf(QUERY_COLOURS[look.theme][marked.colour]!),
        edge: rgbOf(MAP_COLOURS[look.theme].objectEdge),
        edge_px: 1.5,
    });
}

function focalsLayer(marked: Marked, objects: Objects, theme: Theme): Layer {
    const { positions, count } = placesOf(objects, marked.focals);
    const edge = rgbOf(QUERY_COLOURS[theme][marked.colour]!);
    return rings(`focals:${marked.query}`, positions, count, edge, 9, 3);
}

function movingLayer(marked: Marked, objects: Objects, theme: Theme): Layer {
    const colour = rgbOf(QUERY_COLOURS[theme][marked.colour]!);
    const rings = marked.moving.map(({ ring, follows, at }) => {
        const now = objects.placeOf(follows) ?? at;
        return ring.map(([lon, lat]) => [lon + now[0] - at[0], lat + now[1] - at[1]] as Place);
    });
    return new PolygonLayer<Place[]>({
        id: `moving:${marked.query}`,
        data: rings,
        getPolygon: (ring) => ring,
        getFillColor: [...colour, 30],
        getLineColor: colour,
        getLineWidth: 2,
        lineWidthUnits: 'pixels',
    });
}

function selectedLayer(objects: Objects, name: string, theme: Theme): Layer {
    const { positions, count } = placesOf(objects, [name]);
    const edge = rgbOf(MAP_COLOURS[theme].way);
    return rings('selected', positions, count, edge, 11, 2.5);
}

/** All layers of what moves, as it is now; they are cheap to make, for arrays are handed on and not copied. */
export function movingLayers(streams: Map<string, Objects>, look: Look): Layer[] {
    const each = [...streams].map(([name, objects]) => layersOf(name, objects, look));
    return [...each.flatMap((one) => one.below), ...each.flatMap((one) => one.above)];
}

/** The layers of one stream: regions that go with objects lie below the objects of all streams. */
function layersOf(stream: string, objects: Objects, look: Look): { below: Layer[]; above: Layer[] } {
    const marked = look.marked.filter((one) => one.stream === stream);
    const moving = marked.filter((one) => one.moving.length > 0);
    const above = [objectsLayer(stream, objects, look)];
    for (const one of marked) {
        above.push(membersLayer(one, objects, look));
        if (one.focals.length > 0) above.push(focalsLayer(one, objects, look.theme));
    }
    if (look.selected?.stream === stream) above.push(selectedLayer(objects, look.selected.name, look.theme));
    return { below: moving.map((one) => movingLayer(one, objects, look.theme)), above };
}
