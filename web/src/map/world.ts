// The world below everything: land and borders of Natural Earth, in a file of the page's own. Nobody else is asked.
import { feature, mesh, type Topology } from 'topojson-client';
import { addressOfPart } from '../data/recorded';

export interface World {
    land: GeoJSON.MultiPolygon;
    borders: GeoJSON.MultiLineString; // those between two countries: the coast is the edge of the land
}

type Ring = GeoJSON.Position[];

const AROUND = 360;

/** The world, asked for and unpacked; an error where the file does not come. */
export async function readWorld(): Promise<World> {
    const reply = await fetch(addressOfPart('world', 'application/json', '/page/files/world.json'));
    if (!reply.ok) throw new Error(`the world's coast did not come: ${reply.status}`);
    const topology = (await reply.json()) as Topology;
    const { land, countries } = topology.objects;
    if (land === undefined || countries === undefined) throw new Error('the file of the world has no land');
    return { land: onMap(feature(topology, land)), borders: mesh(topology, countries, (a, b) => a !== b) };
}

/** Land as a map takes it, which knows no sphere: what goes across 180 degrees goes on behind them. */
function onMap(land: GeoJSON.FeatureCollection): GeoJSON.MultiPolygon {
    const polygons = land.features.flatMap(({ geometry }) => {
        if (geometry.type === 'MultiPolygon') return geometry.coordinates;
        return geometry.type === 'Polygon' ? [geometry.coordinates] : [];
    });
    const coordinates = polygons.map(([outer, ...holes]) => [
        aroundPole(unrolled(outer!)),
        ...holes.map(unrolled).filter(isClosed), // one that is not is the pole itself
    ]);
    return { type: 'MultiPolygon', coordinates };
}

/** A ring without steps from one side of the map to the other: its longitudes go beyond 180 degrees. */
function unrolled(ring: Ring): Ring {
    let turns = 0;
    let before = ring[0]![0]!;
    return ring.map(([lon, lat]) => {
        if (Math.abs(lon! - before) > AROUND / 2) turns += lon! < before ? 1 : -1;
        before = lon!;
        return [lon! + AROUND * turns, lat!];
    });
}

const isClosed = (ring: Ring): boolean => ring[0]![0] === ring.at(-1)![0];

/** A ring that goes around a pole ends where it began, but for 360 degrees: it is closed along the pole. */
function aroundPole(ring: Ring): Ring {
    if (isClosed(ring)) return ring;
    const [first, last] = [ring[0]!, ring.at(-1)!];
    const pole = Math.sign(first[1]!) * 90;
    return [...ring, [last[0]!, pole], [first[0]!, pole], first];
}
