// Objects that move, drawn by the graphics card from arrays of numbers: nothing is made for each object.
import { COORDINATE_SYSTEM, type Layer } from '@deck.gl/core';
import { PolygonLayer, ScatterplotLayer } from '@deck.gl/layers';
import type { Objects } from '../data/live';
import type { Place } from '../data/types';
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
}

const SMALL_PX = 3;
const MEMBER_PX = 5.5;
const MANY = 20_000; // from here on objects are small points

function dots(
    id: string,
    positions: Float64Array,
    count: number,
    colour: Rgb,
    look: { radius: number; edge: Rgb; edge_px: number; filled?: boolean },
): Layer {
    return new ScatterplotLayer({
        id,
        data: { length: count, attributes: { getPosition: { value: positions, size: 2 } } },
        coordinateSystem: COORDINATE_SYSTEM.LNGLAT,
        radiusUnits: 'pixels',
        lineWidthUnits: 'pixels',
        getRadius: look.radius,
        getFillColor: colour,
        getLineColor: look.edge,
        getLineWidth: look.edge_px,
        stroked: look.edge_px > 0,
        filled: look.filled ?? true,
    });
}

function objectsLayer(stream: string, objects: Objects, theme: Theme): Layer {
    const colours = MAP_COLOURS[theme];
    const isMany = objects.count > MANY;
    return new DotsLayer({
        id: `objects:${stream}`,
        data: { length: objects.count, attributes: { getPosition: { value: objects.shown, size: 2 } } },
        coordinateSystem: COORDINATE_SYSTEM.LNGLAT,
        radius_px: isMany ? 1.6 : SMALL_PX,
        fill: rgbOf(colours.object),
        edge: rgbOf(colours.objectEdge),
        edge_px: isMany ? 0 : 0.75,
    });
}

function placesOf(objects: Objects, names: string[]): { positions: Float64Array; count: number } {
    const positions = new Float64Array(2 * names.length);
    let count = 0;
    for (const name of names) {
        const place = objects.placeOf(name);
        if (place === null) continue;
        positions.set(place, 2 * count);
        count += 1;
    }
    return { positions, count };
}

function membersLayer(marked: Marked, objects: Objects, theme: Theme): Layer {
    const { positions, count } = placesOf(objects, marked.members);
    const colour = rgbOf(QUERY_COLOURS[theme][marked.colour]!);
    const edge = rgbOf(MAP_COLOURS[theme].objectEdge);
    return dots(`members:${marked.query}`, positions, count, colour, { radius: MEMBER_PX, edge, edge_px: 1.5 });
}

function focalsLayer(marked: Marked, objects: Objects, theme: Theme): Layer {
    const { positions, count } = placesOf(objects, marked.focals);
    const edge = rgbOf(QUERY_COLOURS[theme][marked.colour]!);
    return dots(`focals:${marked.query}`, positions, count, edge, { radius: 9, edge, edge_px: 3, filled: false });
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
    return dots('selected', positions, count, edge, { radius: 11, edge, edge_px: 2.5, filled: false });
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
    const above = [objectsLayer(stream, objects, look.theme)];
    for (const one of marked) {
        above.push(membersLayer(one, objects, look.theme));
        if (one.focals.length > 0) above.push(focalsLayer(one, objects, look.theme));
    }
    if (look.selected?.stream === stream) above.push(selectedLayer(objects, look.selected.name, look.theme));
    return { below: moving.map((one) => movingLayer(one, objects, look.theme)), above };
}
