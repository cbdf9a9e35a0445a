// From places on the map to coordinates of a stream. One without a place on Earth is shown near 0, 0.
import type { Place, Space } from './types';

const EARTH_RADIUS_M = 6371008.8;
export const METRES_PER_DEGREE = (Math.PI * EARTH_RADIUS_M) / 180;

/** Great-circle distance in metres on a sphere: for what is drawn by hand, right to half a percent. */
export function metresBetween(a: Place, b: Place): number {
    const rad = Math.PI / 180;
    const dLat = (b[1] - a[1]) * rad;
    const dLon = (b[0] - a[0]) * rad;
    const h = Math.sin(dLat / 2) ** 2 + Math.cos(a[1] * rad) * Math.cos(b[1] * rad) * Math.sin(dLon / 2) ** 2;
    return 2 * EARTH_RADIUS_M * Math.asin(Math.min(1, Math.sqrt(h)));
}

/** A ring of places around a centre. */
export function ringAround(centre: Place, radius_m: number, sides = 72): Place[] {
    const dLat = radius_m / METRES_PER_DEGREE;
    const dLon = dLat / Math.max(0.01, Math.cos((centre[1] * Math.PI) / 180));
    return Array.from({ length: sides + 1 }, (_, i) => {
        const angle = (2 * Math.PI * (i % sides)) / sides;
        return [centre[0] + dLon * Math.cos(angle), centre[1] + dLat * Math.sin(angle)];
    });
}

const GLOBE: Space = { kind: 'globe' };
const PLANES_END = 1; // degrees from 0, 0 within which planes are shown, with room

/** In which coordinates a place on the map is told: those of planes where nothing else is, or near 0, 0. */
export function spaceAt([lon, lat]: Place, spaces: Space[]): Space {
    const plane = spaces.find((one) => one.kind === 'plane');
    const isAlone = spaces.every((one) => one.kind === 'plane');
    const isNear = Math.max(Math.abs(lon), Math.abs(lat)) <= PLANES_END;
    return plane !== undefined && (isAlone || isNear) ? plane : GLOBE;
}

/** Writes places and lengths as statements about one stream have them. */
export class Writer {
    constructor(private readonly space: Space) {}

    coordinates([lon, lat]: Place): [string, string] {
        if (this.space.kind === 'globe') return [rounded(lon, 6), rounded(lat, 6)];
        const { x0, y0, s } = this.space;
        const digits = Math.max(0, Math.min(9, Math.ceil(6 + Math.log10(s)))); // as fine as the map is drawn
        return [rounded(x0 + lon / s, digits), rounded(y0 + lat / s, digits)];
    }

    /** A length that was measured on the map, in metres of the map. */
    length(metres: number): string {
        if (this.space.kind === 'globe') return `${rounded(metres, metres < 10 ? 2 : 0)} m`;
        return `${rounded(this.units(metres), 6)} m`;
    }

    /** A length on the map in units of the stream: metres, or what its plane has. */
    units(metres: number): number {
        if (this.space.kind === 'globe') return metres;
        return Number((metres / METRES_PER_DEGREE / this.space.s).toPrecision(6));
    }

    /** A length in units of the stream as metres of the map. */
    metres(units: number): number {
        return this.space.kind === 'globe' ? units : units * this.space.s * METRES_PER_DEGREE;
    }

    get unit(): string {
        return this.space.kind === 'globe' ? 'm' : (this.space.unit ?? '');
    }
}

const rounded = (value: number, digits: number): string => String(Number(value.toFixed(digits)));
