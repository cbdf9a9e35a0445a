// The map: base map, regions and ways that stand still, and above them what moves.
import { MapLibreOverlay } from '@deck.gl/maplibre';
import {
    addProtocol,
    Map as LibreMap,
    NavigationControl,
    ScaleControl,
    setWorkerUrl,
    type GeoJSONSource,
    type LayerSpecification,
    type StyleSpecification,
} from 'maplibre-gl';
import 'maplibre-gl/dist/maplibre-gl.css';
import type { Objects } from '../data/live';
import { addressOfPart } from '../data/recorded';
import type { Box, LayerState, Place } from '../data/types';
import { LAYER, recordedTile, styleOf } from './base';
import { MAP_COLOURS, QUERY_COLOURS, type Theme } from './colours';
import { groundStyle, TILES, type Ground } from './ground';
import { hasRoomForArrows, movingLayers, type Marked } from './objects';
import { readWorld, type World } from './world';

setWorkerUrl(addressOfPart('worker', 'text/javascript', '/page/files/worker.js'));
addProtocol('recorded', ({ url }) => recordedTile(url));

const EMPTY: GeoJSON.FeatureCollection = { type: 'FeatureCollection', features: [] };
/** What lies still on the map beside the base map, from the lowest to the highest. */
export type Still = 'index' | 'ghosts' | 'shapes' | 'ways' | 'drawn';
const STILL: Still[] = ['index', 'ghosts', 'shapes', 'drawn', 'ways'];
const CLICK_PX = 12;
const SLOW_FRAME_MS = 60;
const REST_SHARE = 3; // so long, in frames, after a slow one
const WORLD_AGAIN_MS = 5000;

/** A feature of a layer that was clicked, with what its tile says of it. */
export interface ClickedFeature {
    layer: string;
    geometry: string;
    properties: Record<string, unknown>;
}

export interface Clicked {
    stream: string;
    name: string;
}

/** What a legend cannot know otherwise. */
export interface Drawing {
    hasArrows: boolean; // some object is drawn as an arrow head
    tilesFail: boolean; // the last tile below the layers that was asked for did not come
}

const DRAWN = 'td-'; // begins the names of what drawing by hand puts on the map

/** A new style with what is being drawn by hand, which would go with the old one. */
function withDrawn(before: StyleSpecification | undefined, next: StyleSpecification): StyleSpecification {
    if (before === undefined) return next;
    const sources = Object.entries(before.sources).filter(([name]) => name.startsWith(DRAWN));
    const layers = before.layers.filter((one) => 'source' in one && one.source.startsWith(DRAWN));
    return {
        ...next,
        sources: { ...next.sources, ...Object.fromEntries(sources) },
        layers: [...next.layers, ...layers],
    };
}

/** Everything on the map. */
export class MapView {
    readonly map: LibreMap;
    readonly streams = new Map<string, Objects>();
    marked: Marked[] = [];
    selected: Clicked | null = null;
    frame_ms: number[] = []; // what the last frames cost, for whoever measures
    private readonly overlay = new MapLibreOverlay({ interleaved: false, layers: [] });
    private readonly still = new Map<Still, GeoJSON.FeatureCollection>();
    private layers: LayerState[] = [];
    private ground: Ground = { kind: 'plain' };
    private world: World | null = null;
    private isWorldAsked = false;
    private drawing: Drawing = { hasArrows: false, tilesFail: false };
    private theme: Theme;
    private styleKey = '';
    private drawn_ms: number | null = null; // when the last frame was begun that is not known to be over
    private rests_until_ms = 0;
    private isDue = false;
    private isReady = false; // whether the style takes sources

    /**
     * @param container takes the map.
     * @param onDrawing is told of what is drawn when that has changed.
     */
    constructor(
        container: HTMLElement,
        theme: Theme,
        private readonly onDrawing: (drawing: Drawing) => void,
    ) {
        this.theme = theme;
        this.map = new LibreMap({
            container,
            style: this.style(),
            center: [0, 0],
            zoom: 1,
            attributionControl: false,
            dragRotate: false,
            pitchWithRotate: false,
            maxPitch: 0,
            renderWorldCopies: false,
            fadeDuration: 0,
        });
        this.map.touchZoomRotate.disableRotation();
        this.map.addControl(this.overlay);
        this.map.addControl(new NavigationControl({ showCompass: false }), 'top-right');
        this.map.addControl(new ScaleControl({ maxWidth: 120 }), 'bottom-left');
        this.map.on('style.load', () => {
            this.isReady = true;
            this.putStill();
        });
        // A tile that fails is asked for again when the map moves.
        this.map.on('error', (event) => this.noteTile(event, true));
        this.map.on('sourcedata', (event) => event.tile && this.noteTile(event, false));
        this.map.on('moveend', () => this.draw()); // others are in sight
        requestAnimationFrame(this.drawFrame);
    }

    /** Shows these layers below everything else, and the ground below them; what is shown already stays. */
    showLayers(layers: LayerState[], theme: Theme, ground: Ground): void {
        const key = JSON.stringify([theme, ground, layers.map((one) => [one.name, one.version])]);
        if (key === this.styleKey) return;
        [this.styleKey, this.layers, this.theme, this.ground] = [key, layers, theme, ground];
        if (ground.kind === 'world' && !this.isWorldAsked) void this.askWorld();
        this.restyle();
    }

    private style(): StyleSpecification {
        return styleOf(this.layers, this.theme, groundStyle(this.ground, this.world, this.theme));
    }

    private restyle(): void {
        this.isReady = false;
        this.map.setStyle(this.style(), { diff: false, transformStyle: withDrawn });
        this.draw();
    }

    /** Puts the world below the layers once it has come; until then they lie on a plain. */
    private async askWorld(): Promise<void> {
        this.isWorldAsked = true;
        try {
            this.world = await readWorld();
        } catch {
            setTimeout(() => void this.askWorld(), WORLD_AGAIN_MS); // the server is away: that is said elsewhere
            return;
        }
        if (this.ground.kind === 'world') this.restyle();
    }

    private noteTile(event: object, tilesFail: boolean): void {
        if ('sourceId' in event && event.sourceId === TILES) this.tell({ tilesFail });
    }

    private tell(news: Partial<Drawing>): void {
        const drawing = { ...this.drawing, ...news };
        if (JSON.stringify(drawing) === JSON.stringify(this.drawing)) return;
        this.drawing = drawing;
        this.onDrawing(drawing);
    }

    /** Shows features that lie still, in the place of those that were there. */
    showStill(what: Still, features: GeoJSON.FeatureCollection): void {
        this.still.set(what, features);
        if (this.isReady) this.map.getSource<GeoJSONSource>(what)?.setData(features);
    }

    fit(box: Box, most_zoom = 17): void {
        const [west, south, east, north] = box;
        const room = { top: 20, left: 20, right: 50, bottom: 80 }; // its controls lie there
        this.map.fitBounds(
            [
                [west, south],
                [east, north],
            ],
            { padding: room, animate: false, maxZoom: most_zoom },
        );
    }

    /** Moves the map to a box unless all of it is in sight. */
    bring(box: Box): void {
        const bounds = this.map.getBounds();
        const [west, south, east, north] = box;
        if (!bounds.contains([west, south]) || !bounds.contains([east, north])) this.fit(box, 16);
    }

    /** The object at a place of the screen, if there is one. */
    objectAt(x: number, y: number): Clicked | null {
        const place = this.map.unproject([x, y]);
        const degrees = Math.abs(this.map.unproject([x, y + CLICK_PX]).lat - place.lat);
        for (const [stream, objects] of this.streams) {
            const found = objects.nearest(place.lng, place.lat, degrees);
            if (found !== null) return { stream, name: objects.names[found]! };
        }
        return null;
    }

    /** The feature of a layer at a place of the screen, the highest of those that lie there. */
    featureAt(x: number, y: number): ClickedFeature | null {
        const found = this.map
            .queryRenderedFeatures([
                [x - 3, y - 3],
                [x + 3, y + 3],
            ])
            .find((one) => one.source.startsWith(LAYER));
        return found === undefined
            ? null
            : { layer: found.source.slice(LAYER.length), geometry: found.geometry.type, properties: found.properties };
    }

    placeOf(which: Clicked): Place | null {
        return this.streams.get(which.stream)?.placeOf(which.name) ?? null;
    }

    /** Draws what moves at the next frame; while something does, it is drawn at each. */
    draw(): void {
        this.isDue = true;
    }

    private drawNow(): void {
        const began = performance.now();
        const hasArrows = this.hasRoomForArrows();
        const look = { theme: this.theme, selected: this.selected, marked: this.marked, hasArrows };
        this.overlay.setProps({ layers: movingLayers(this.streams, look) });
        this.tell({ hasArrows: hasArrows && [...this.streams.values()].some((one) => one.isAnyMoving()) });
        this.frame_ms = [...this.frame_ms.slice(-99), performance.now() - began];
    }

    private hasRoomForArrows(): boolean {
        const { clientWidth, clientHeight } = this.map.getContainer();
        const [[west, south], [east, north]] = this.map.getBounds().toArray();
        return hasRoomForArrows(this.streams.values(), [west, south, east, north], clientWidth, clientHeight);
    }

    private readonly drawFrame = (): void => {
        const now = performance.now();
        if (this.drawn_ms !== null) this.rest(now - this.drawn_ms, now);
        this.drawn_ms = null;
        if (now >= this.rests_until_ms && (this.moveAll(now) || this.isDue)) {
            this.isDue = false;
            this.drawNow();
            this.drawn_ms = now;
        }
        requestAnimationFrame(this.drawFrame);
    };

    private moveAll(now_ms: number): boolean {
        let moves = false;
        for (const objects of this.streams.values()) moves = objects.move(now_ms) || moves;
        return moves;
    }

    /** A frame that took long, as without a graphics card, leaves time for what comes from the server: it is read between frames. */
    private rest(took_ms: number, now_ms: number): void {
        if (took_ms > SLOW_FRAME_MS) this.rests_until_ms = now_ms + REST_SHARE * took_ms;
    }

    /** After a new style its sources are gone: they are put back. */
    private putStill(): void {
        for (const what of STILL) {
            if (this.map.getSource(what)) continue;
            this.map.addSource(what, { type: 'geojson', data: this.still.get(what) ?? EMPTY });
            for (const layer of stillLayers(what, this.theme)) this.map.addLayer(layer);
        }
    }
}

const POINTS = { filter: ['==', ['geometry-type'], 'Point'] };
const CENTRES = { filter: ['==', ['get', 'role'], 'centre'] };
const OUTLINE = { filter: ['!=', ['geometry-type'], 'Point'] };
const AREAS = { filter: ['==', ['geometry-type'], 'Polygon'] };

/** How what lies still is drawn, from the lowest layer to the highest. */
function stillLayers(what: Still, theme: Theme): LayerSpecification[] {
    const byQuery = ['match', ['get', 'colour'], ...QUERY_COLOURS[theme].flatMap((one, i) => [i, one])];
    const colour = [...byQuery, MAP_COLOURS[theme].way];
    if (what === 'index') return indexLayers();
    if (what === 'ghosts') return ghostLayers(MAP_COLOURS[theme].way);
    if (what === 'ways') return wayLayers(colour, MAP_COLOURS[theme].objectEdge);
    return what === 'shapes' ? shapeLayers(colour) : [];
}

function layerOf(what: Still, type: 'fill' | 'line' | 'circle', name: string, paint: object, more = {}) {
    return { id: `${what}-${name}`, type, source: what, paint, ...more } as LayerSpecification;
}

function indexLayers(): LayerSpecification[] {
    const load = ['interpolate', ['linear'], ['get', 'heat'], 0, 0.03, 1, 0.45];
    return [
        layerOf('index', 'fill', 'fill', { 'fill-color': '#d9480f', 'fill-opacity': load }),
        layerOf('index', 'line', 'line', { 'line-color': '#d9480f', 'line-width': 1, 'line-opacity': 0.7 }),
    ];
}

function ghostLayers(colour: string): LayerSpecification[] {
    return [
        layerOf('ghosts', 'circle', 'point', { 'circle-color': colour, 'circle-opacity': 0.22, 'circle-radius': 2.5 }),
    ];
}

function wayLayers(colour: unknown[], edge: string): LayerSpecification[] {
    const under = { 'line-color': edge, 'line-width': 5, 'line-opacity': 0.8 };
    const ring = { 'circle-stroke-width': 2, 'circle-stroke-color': edge };
    // Around the dot of the object, which lies above: a stay in one place has no line.
    const halo = {
        'circle-color': 'rgba(0,0,0,0)',
        'circle-radius': 11,
        'circle-stroke-width': 2.5,
        'circle-stroke-color': colour,
    };
    return [
        layerOf('ways', 'line', 'edge', under, OUTLINE),
        layerOf('ways', 'line', 'line', { 'line-color': colour, 'line-width': 2.5 }, OUTLINE),
        layerOf('ways', 'circle', 'point', { 'circle-color': colour, 'circle-radius': 5, ...ring }, POINTS),
        layerOf('ways', 'circle', 'halo', halo, POINTS),
    ];
}

function shapeLayers(colour: unknown[]): LayerSpecification[] {
    const radius = ['match', ['get', 'role'], 'centre', 8, 5];
    const hollow = { 'circle-color': 'rgba(0,0,0,0)', 'circle-radius': radius };
    const ring = { 'circle-stroke-width': 2.5, 'circle-stroke-color': colour };
    return [
        layerOf('shapes', 'fill', 'fill', { 'fill-color': colour, 'fill-opacity': 0.14 }, AREAS),
        layerOf('shapes', 'line', 'line', { 'line-color': colour, 'line-width': 2 }, OUTLINE),
        layerOf('shapes', 'circle', 'point', { ...hollow, ...ring }, POINTS),
        layerOf('shapes', 'circle', 'core', { 'circle-color': colour, 'circle-radius': 2.5 }, CENTRES),
    ];
}
