// What is in an answer and what changed in it, as files that a person keeps: CSV and GeoJSON.
import { getJson, pathOf, sendText } from './api';
import { isoOf } from './times';

export const MOST_CHANGES = 1000;

type Row = Record<string, unknown>;

const MEMBER_COLUMNS = ['object', 'partner', 'since_ts', 'value', 'x', 'y', 'fields'];
const CHANGE_COLUMNS = ['event_ts', 'sign', 'object', 'partner', 'cause', 'value', 'x', 'y', 'fields', 'query_version'];

/** Who is in the answer of a query, with places: now, or at a moment. */
export async function membersOfQuery(name: string, at_ms: number | null): Promise<Row[]> {
    const at = at_ms === null ? null : isoOf(at_ms);
    return (await getJson<{ rows: Row[] }>(pathOf(['v1', 'answers', name], { at }))).rows;
}

/** The last changes of a query that are stored, the newest first. */
export async function changesOfQuery(name: string): Promise<Row[]> {
    const columns = CHANGE_COLUMNS.join(', ');
    const where = `query = '${name.replaceAll("'", "''")}'`;
    const text = `SELECT ${columns} FROM changes WHERE ${where} ORDER BY position DESC, seq DESC LIMIT ${MOST_CHANGES}`;
    return (await sendText<{ rows: Row[] }>('POST', pathOf(['v1', 'sql'], { limit: MOST_CHANGES }), text)).rows;
}

const columnsOf = (what: 'members' | 'changes'): string[] => (what === 'members' ? MEMBER_COLUMNS : CHANGE_COLUMNS);

function cellOf(value: unknown): string {
    if (value === null || value === undefined) return '';
    const text = typeof value === 'object' ? JSON.stringify(value) : String(value as string | number | boolean);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Rows as CSV with a header; places are in the coordinates of the stream. */
export function csvOf(rows: Row[], what: 'members' | 'changes'): string {
    const names = columnsOf(what);
    const lines = rows.map((row) => names.map((name) => cellOf(row[name])).join(','));
    return [names.join(','), ...lines, ''].join('\r\n');
}

/** Rows as GeoJSON, where x and y are longitude and latitude; a row whose place is not known has no geometry. */
export function geoJsonOf(rows: Row[], what: 'members' | 'changes'): string {
    const names = columnsOf(what).filter((name) => name !== 'x' && name !== 'y');
    const features = rows.map((row) => ({
        type: 'Feature',
        geometry:
            typeof row['x'] === 'number' && typeof row['y'] === 'number'
                ? { type: 'Point', coordinates: [row['x'], row['y']] }
                : null,
        properties: Object.fromEntries(names.map((name) => [name, row[name] ?? null])),
    }));
    return JSON.stringify({ type: 'FeatureCollection', features });
}

/** Gives a text to the browser as a file to keep. */
export function keepFile(name: string, text: string, media: string): void {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([text], { type: media }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
