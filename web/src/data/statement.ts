// What is drawn and chosen, as a statement of the query language (docs/query-language.md).
import { Writer } from './space';
import type { Place, Space } from './types';

export type Shape =
    | { type: 'rectangle'; box: [number, number, number, number] }
    | { type: 'circle'; centre: Place; radius_m: number }
    | { type: 'polygon'; ring: Place[] }
    | { type: 'corridor'; line: Place[]; width_m: number }
    | { type: 'point'; at: Place }
    | { type: 'object'; object: string; radius_m: number }
    | { type: 'feature'; layer: string; fid: string };

export type Kind = 'range' | 'fence' | 'knn' | 'join' | 'window' | 'aggregate';

export interface Wish {
    kind: Kind;
    dwell_min: number; // 0: no dwell
    hysteresis_m: number;
    k: number;
    layer: string;
    feature_kind: string; // empty: any
    distance_m: number; // 0: in it
    window_min: number;
    group_by: string; // empty: one figure
}

export const FIRST_WISH: Wish = {
    kind: 'fence',
    dwell_min: 5,
    hysteresis_m: 20,
    k: 3,
    layer: '',
    feature_kind: '',
    distance_m: 20,
    window_min: 10,
    group_by: '',
};

const PLAIN_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** A name as statements have it. */
export const nameOf = (name: string): string => (PLAIN_NAME.test(name) ? name : `"${name.replaceAll('"', '""')}"`);
const textOf = (text: string): string => `'${text.replaceAll("'", "''")}'`;

function placesOf(places: Place[], write: Writer): string {
    return places.map((one) => write.coordinates(one).join(' ')).join(', ');
}

/** The region of a shape, as it stands behind INSIDE. */
export function regionOf(shape: Shape, space: Space): string {
    const write = new Writer(space);
    switch (shape.type) {
        case 'rectangle': {
            const [west, south] = write.coordinates([shape.box[0], shape.box[1]]);
            const [east, north] = write.coordinates([shape.box[2], shape.box[3]]);
            return `(${west}, ${south}, ${east}, ${north})`;
        }
        case 'circle':
            return `CIRCLE (${write.coordinates(shape.centre).join(', ')}, ${write.length(shape.radius_m)})`;
        case 'polygon':
            return `'POLYGON((${placesOf(shape.ring, write)}))'`;
        case 'corridor':
            return `CORRIDOR ('LINESTRING(${placesOf(shape.line, write)})', ${write.length(shape.width_m)})`;
        case 'object':
            return `('M', ${textOf(shape.object)}, ${write.length(shape.radius_m)})`;
        case 'feature':
            return `FEATURE (${nameOf(shape.layer)}, ${textOf(shape.fid)})`;
        case 'point':
            return `CIRCLE (${write.coordinates(shape.at).join(', ')}, ${write.length(100)})`;
    }
}

function nearestOf(shape: Shape | null, wish: Wish, space: Space): string {
    if (shape?.type === 'object') return `KNN ('M', ${wish.k}, ${textOf(shape.object)})`;
    return `KNN (${wish.k}, ${new Writer(space).coordinates(middleOf(shape)).join(', ')})`;
}

/** The middle of a shape on the map. */
export function middleOf(shape: Shape | null): Place {
    if (shape === null || shape.type === 'object' || shape.type === 'feature') return [0, 0];
    if (shape.type === 'circle') return shape.centre;
    if (shape.type === 'point') return shape.at;
    if (shape.type === 'rectangle') return [(shape.box[0] + shape.box[2]) / 2, (shape.box[1] + shape.box[3]) / 2];
    const places = shape.type === 'polygon' ? shape.ring.slice(1) : shape.line;
    const sum = places.reduce<Place>((all, one) => [all[0] + one[0], all[1] + one[1]], [0, 0]);
    return [sum[0] / places.length, sum[1] / places.length];
}

function fenceOf(wish: Wish): string {
    const dwell = wish.dwell_min > 0 ? `, DWELL ${wish.dwell_min} min` : '';
    const options = wish.hysteresis_m > 0 ? `\n  WITH (hysteresis = ${wish.hysteresis_m} m)` : '';
    return ` DETECT ENTER, EXIT${dwell}${options}`;
}

function joinOf(wish: Wish, stream: string): string {
    const layer = nameOf(wish.layer);
    const near =
        wish.distance_m > 0
            ? `ST_DWithin(${stream}, ${layer}, ${wish.distance_m} m)`
            : `ST_Intersects(${stream}, ${layer})`;
    const kinds = wish.feature_kind === '' ? '' : ` WHERE ${layer}.kind = ${textOf(wish.feature_kind)}`;
    return `\n  JOIN ${layer} ON ${near}${kinds}`;
}

/** The SELECT that a drawing and a wish become; null while something is missing. */
export function statementOf(stream: string, space: Space, shape: Shape | null, wish: Wish): string | null {
    const from = nameOf(stream);
    const inside = shape === null ? '' : `\n  INSIDE ${regionOf(shape, space)}`;
    if (wish.kind === 'join') return wish.layer === '' ? null : `SELECT * FROM ${from}${joinOf(wish, from)}${inside}`;
    if (shape === null) return null;
    if (wish.kind === 'knn') return `SELECT * FROM ${from}\n  ${nearestOf(shape, wish, space)}`;
    if (wish.kind === 'fence') return `SELECT * FROM ${from}${inside}${fenceOf(wish)}`;
    if (wish.kind === 'window') return `SELECT * FROM ${from}${inside}\n  WINDOW ${wish.window_min} min`;
    if (wish.kind === 'range') return `SELECT * FROM ${from}${inside}`;
    if (wish.group_by === '') return `SELECT COUNT(*) FROM ${from}${inside}`;
    const by = nameOf(wish.group_by);
    return `SELECT ${by}, COUNT(*) FROM ${from}${inside}\n  GROUP BY ${by}`;
}

/** The SELECT of a statement that registers a query. */
export function selectOf(text: string): string {
    return text
        .replace(/^\s*(REGISTER|REPLACE)\s+QUERY\s+.*?\s+AS\s+(?=SELECT)/is, '')
        .replace(/;\s*$/, '')
        .replace(/\n {4}/g, '\n  ');
}
