// What lies below the home's own layers: the coast and the borders of the world, tiles of somebody's map, or nothing.
import type { LayerSpecification, SourceSpecification } from 'maplibre-gl';
import { recording } from '../data/recorded';
import type { PageState } from '../data/types';
import { MAP_COLOURS, type Theme } from './colours';
import type { World } from './world';

export type Ground = { kind: 'plain' } | { kind: 'world' } | { kind: 'tiles'; url: string; attribution: string };

export interface GroundStyle {
    sources: Record<string, SourceSpecification>;
    layers: LayerSpecification[];
}

// No layer of a home can be called so: its name has no colon.
const LAND = 'world:land';
const BORDERS = 'world:borders';
export const TILES = 'ground:tiles';
const TILE_PX = 256;
const TILES_END = 19; // a zoom that maps have; beyond it tiles are enlarged
// Between these zooms the world fades: its coast is right to some kilometres. That of a report is coarser.
const [FADES, IS_GONE] = recording === null ? [8, 11] : [5, 8];

/** What is to lie below the layers. Planes are shown at a pretend place, where nothing of the world is theirs. */
export function groundOf(page: PageState): Ground {
    const spaces = [...page.streams, ...page.layers].map((one) => one.space?.kind ?? 'globe');
    if (spaces.length > 0 && spaces.every((kind) => kind === 'plane')) return { kind: 'plain' };
    const tiles = page.base_map ?? null;
    if (tiles === null || recording !== null) return { kind: 'world' }; // a report asks nobody
    return { kind: 'tiles', url: tiles.url, attribution: tiles.attribution ?? new URL(tiles.url).host };
}

/** Sources and layers of the ground; plain while the world has not come. */
export function groundStyle(ground: Ground, world: World | null, theme: Theme): GroundStyle {
    if (ground.kind === 'tiles') return tilesStyle(ground.url, theme);
    if (ground.kind === 'world' && world !== null) return worldStyle(world, theme);
    return { sources: {}, layers: [backgroundOf(MAP_COLOURS[theme].land)] };
}

function backgroundOf(colour: unknown): LayerSpecification {
    return { id: 'ground', type: 'background', paint: { 'background-color': colour } } as LayerSpecification;
}

function fading(from: unknown, to: unknown): unknown[] {
    return ['interpolate', ['linear'], ['zoom'], FADES, from, IS_GONE, to];
}

function worldStyle(world: World, theme: Theme): GroundStyle {
    const { land, water, border } = MAP_COLOURS[theme];
    const line = {
        'line-color': border,
        'line-width': ['interpolate', ['linear'], ['zoom'], 1, 0.6, 8, 1.4],
        'line-opacity': fading(1, 0),
    };
    const layers = [
        backgroundOf(fading(water, land)),
        { id: LAND, type: 'fill', source: LAND, paint: { 'fill-color': land } },
        { id: BORDERS, type: 'line', source: BORDERS, paint: line },
    ] as LayerSpecification[];
    const sources: GroundStyle['sources'] = {
        [LAND]: { type: 'geojson', data: world.land },
        [BORDERS]: { type: 'geojson', data: world.borders },
    };
    return { sources, layers };
}

function tilesStyle(url: string, theme: Theme): GroundStyle {
    const source: SourceSpecification = { type: 'raster', tiles: [url], tileSize: TILE_PX, maxzoom: TILES_END };
    const paint = theme === 'dark' ? { 'raster-brightness-max': 0.55, 'raster-saturation': -0.4 } : {};
    return {
        sources: { [TILES]: source },
        layers: [backgroundOf(MAP_COLOURS[theme].land), { id: TILES, type: 'raster', source: TILES, paint }],
    };
}
