// Drawing by hand: rectangle, circle, polygon, corridor, point; afterwards corners can be dragged.
import {
    TerraDraw,
    TerraDrawCircleMode,
    TerraDrawLineStringMode,
    TerraDrawPointMode,
    TerraDrawPolygonMode,
    TerraDrawRectangleMode,
    TerraDrawSelectMode,
    type TerraDrawExtend,
    type GeoJSONStoreFeatures,
    type HexColor,
} from 'terra-draw';
import { TerraDrawMapLibreGLAdapter } from 'terra-draw-maplibre-gl-adapter';
import type { Map as LibreMap } from 'maplibre-gl';
import { metresBetween, ringAround } from '../data/space';
import type { Shape } from '../data/statement';
import type { Place } from '../data/types';

export type Tool = 'rectangle' | 'circle' | 'polygon' | 'corridor' | 'point';

const MODES: Record<Tool, string> = {
    rectangle: 'rectangle',
    circle: 'circle',
    polygon: 'polygon',
    corridor: 'linestring',
    point: 'point',
};
const TYPES: Record<Tool, string> = {
    rectangle: 'Polygon',
    circle: 'Polygon',
    polygon: 'Polygon',
    corridor: 'LineString',
    point: 'Point',
};
const DIGITS = 7;
const SIDES = 48; // of a circle, as it is drawn; its statement has centre and radius
const START_KM = 0.00001; // of a circle of which there is only the centre
const SLIP_PX = 8; // a finger that taps slips that far: no drag

/**
 * Begins what is dragged where the pointer was pressed, not where it was when that became a drag. A finger that taps
 * comes from nowhere: its place is told as a move first, for a shape reaches as far as the last move.
 */
class Adapter extends TerraDrawMapLibreGLAdapter<LibreMap> {
    override register(callbacks: TerraDrawExtend.TerraDrawCallbacks): void {
        super.register({
            ...callbacks,
            onDragStart: (event, setDraggable) => {
                callbacks.onDragStart(this._lastDrawEvent ?? event, setDraggable);
                callbacks.onDrag(event, setDraggable);
            },
            onClick: (event) => {
                callbacks.onMouseMove(event);
                callbacks.onClick(event);
            },
        });
    }
}

/** One shape on the map, drawn, dragged, or put there. */
export class Drawing {
    private readonly draw: TerraDraw;
    private tool: Tool | null = null;
    private width_m = 50;

    /** `told` is given each shape that it becomes, also while it is drawn; `done` is called when it has been drawn. */
    constructor(
        map: LibreMap,
        colour: string,
        private readonly told: (shape: Shape) => void,
        private readonly done: () => void,
    ) {
        const adapter = new Adapter({ map, coordinatePrecision: DIGITS, minPixelDragDistance: SLIP_PX });
        this.draw = new TerraDraw({ adapter, modes: modesOf(colour as HexColor) });
        this.draw.start();
        this.draw.on('change', (ids, type) => {
            if (type !== 'delete') ids.forEach((id) => this.tell(id));
        });
        this.draw.on('finish', (id, { action }) => {
            const isShape = this.tell(id);
            if (action !== 'draw') return;
            if (isShape) this.finish(id);
            else if (this.tool !== null) this.begin(this.tool, this.width_m); // both clicks were at one place
        });
    }

    get isDrawing(): boolean {
        return this.tool !== null && this.draw.getMode() !== 'select' && this.draw.getMode() !== 'static';
    }

    begin(tool: Tool, width_m: number): void {
        this.clear();
        [this.tool, this.width_m] = [tool, width_m];
        this.draw.setMode(MODES[tool]);
    }

    /** Puts a shape on the map, as if it had been drawn. */
    put(shape: Shape): void {
        this.clear();
        const feature = featureOf(shape);
        if (feature === null) return;
        if (shape.type === 'corridor') this.width_m = shape.width_m;
        this.tool = shape.type as Tool;
        const [added] = this.draw.addFeatures([feature]);
        if (added?.id === undefined || !added.valid) return;
        this.draw.setMode('select');
        this.draw.selectFeature(added.id);
    }

    widen(width_m: number): void {
        this.width_m = width_m;
    }

    clear(): void {
        this.tool = null;
        this.draw.clear();
        this.draw.setMode('static');
    }

    private finish(id: string | number): void {
        this.draw.setMode('select');
        this.draw.selectFeature(id);
        this.done();
    }

    /** Tells what a feature is as a shape; false: it is none. */
    private tell(id: string | number | undefined): boolean {
        const feature = id === undefined ? undefined : this.draw.getSnapshotFeature(id);
        if (feature === undefined || this.tool === null) return false;
        const shape = shapeOf(feature, this.tool, this.width_m);
        if (shape !== null) this.told(shape);
        return shape !== null;
    }
}

function modesOf(colour: HexColor): ConstructorParameters<typeof TerraDraw>[0]['modes'] {
    const area = { fillColor: colour, fillOpacity: 0.15, outlineColor: colour, outlineWidth: 2 };
    return [
        new TerraDrawRectangleMode({ styles: area, drawInteraction: 'click-move-or-drag' }),
        new TerraDrawCircleMode({
            styles: area,
            drawInteraction: 'click-move-or-drag',
            segments: SIDES,
            startingRadiusKilometers: START_KM,
        }),
        new TerraDrawPolygonMode({ styles: area }),
        new TerraDrawLineStringMode({ styles: { lineStringColor: colour, lineStringWidth: 3 } }),
        new TerraDrawPointMode({ styles: { pointColor: colour, pointWidth: 6 } }),
        selectMode(colour),
    ];
}

/** What can be dragged of a shape that has been drawn: corners, or its size, and all of it. */
function selectMode(colour: HexColor): TerraDrawSelectMode {
    const corners = { draggable: true, midpoints: true, deletable: true };
    const sized = (from: 'center' | 'opposite') => ({
        feature: { draggable: true, coordinates: { draggable: true, resizable: from } },
    });
    return new TerraDrawSelectMode({
        flags: {
            polygon: { feature: { draggable: true, coordinates: corners } },
            linestring: { feature: { draggable: true, coordinates: corners } },
            point: { feature: { draggable: true } },
            circle: sized('center'),
            rectangle: sized('opposite'),
        },
        styles: selectedStyles(colour),
    });
}

function selectedStyles(colour: HexColor) {
    return {
        selectionPointWidth: 3,
        selectionPointColor: colour,
        selectionPointOutlineWidth: 1,
        midPointColor: colour,
        midPointWidth: 2,
        selectedPolygonColor: colour,
        selectedPolygonFillOpacity: 0.15,
        selectedPolygonOutlineColor: colour,
        selectedLineStringColor: colour,
        selectedPointColor: colour,
    };
}

/** A drawn feature as a shape; null while it is nothing yet. */
export function shapeOf(feature: GeoJSONStoreFeatures, tool: Tool, width_m: number): Shape | null {
    const { geometry, properties } = feature;
    if (properties['mode'] !== MODES[tool] || geometry.type !== TYPES[tool]) return null; // corners, guides
    if (geometry.type === 'Point') return { type: 'point', at: geometry.coordinates as Place };
    if (geometry.type === 'LineString') {
        const line = withoutTwins(geometry.coordinates as Place[]);
        return line.length < 2 ? null : { type: 'corridor', line, width_m };
    }
    if (geometry.type !== 'Polygon') return null;
    const ring = geometry.coordinates[0] as Place[];
    const box = boxOf(ring);
    if (box[0] === box[2] || box[1] === box[3]) return null;
    if (tool === 'circle' && properties['radiusKilometers'] === START_KM) return null;
    if (tool === 'rectangle') return { type: 'rectangle', box };
    if (tool === 'polygon') {
        const corners = withoutTwins(ring);
        return corners.length < 4 ? null : { type: 'polygon', ring: corners };
    }
    const centre: Place = [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2];
    return { type: 'circle', centre, radius_m: metresBetween(centre, [centre[0], box[3]]) };
}

/** A shape as a feature that can be dragged; null for one that goes with an object. */
function featureOf(shape: Shape): GeoJSONStoreFeatures | null {
    const feature = (
        mode: string,
        geometry: GeoJSON.Polygon | GeoJSON.LineString | GeoJSON.Point,
    ): GeoJSONStoreFeatures => ({ type: 'Feature', properties: { mode }, geometry }) as GeoJSONStoreFeatures;
    const polygon = (ring: Place[]): GeoJSON.Polygon => ({ type: 'Polygon', coordinates: [ring.map(roundedPlace)] });
    if (shape.type === 'rectangle') {
        const [w, s, e, n] = shape.box;
        return feature(
            'rectangle',
            polygon([
                [w, s],
                [e, s],
                [e, n],
                [w, n],
                [w, s],
            ]),
        );
    }
    if (shape.type === 'circle') return feature('circle', polygon(ringAround(shape.centre, shape.radius_m, SIDES)));
    if (shape.type === 'polygon') return feature('polygon', polygon(shape.ring));
    if (shape.type === 'corridor')
        return feature('linestring', { type: 'LineString', coordinates: shape.line.map(roundedPlace) });
    if (shape.type === 'point') return feature('point', { type: 'Point', coordinates: roundedPlace(shape.at) });
    return null;
}

const roundedPlace = ([lon, lat]: Place): Place => [Number(lon.toFixed(DIGITS)), Number(lat.toFixed(DIGITS))];

function withoutTwins(places: Place[]): Place[] {
    return places.filter((one, i) => i === 0 || one[0] !== places[i - 1]![0] || one[1] !== places[i - 1]![1]);
}

export function boxOf(places: Place[]): [number, number, number, number] {
    const lons = places.map((one) => one[0]);
    const lats = places.map((one) => one[1]);
    return [Math.min(...lons), Math.min(...lats), Math.max(...lons), Math.max(...lats)];
}
