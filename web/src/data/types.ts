// What the server answers, as docs/server.md has it. Times are texts, ISO 8601 in UTC.

export type Place = [number, number]; // longitude, latitude on the map
export type Box = [number, number, number, number]; // west, south, east, north

export type Space = { kind: 'globe' } | { kind: 'plane'; x0: number; y0: number; s: number; unit: string | null };

export interface WorkerState {
    role: 'engine' | 'task';
    host: string;
    pid: number;
    version: string | null;
    cpu_s: number;
    cpu_share: number | null; // of one core
    memory_bytes: number;
    disk_free_bytes: number | null;
    disk_bytes: number | null;
    shards: number[] | null; // null: all of them
}

export interface StreamState {
    name: string;
    space: Space;
    extent: Box | null;
    group: string | null;
    attributes: Record<string, string>;
    engine: string | null;
    state: string;
    fixes_per_s: number | null;
    came_over_s?: number | null; // over how long came and left of its queries are counted
    late?: number; // fixes that came too late, and all of them, since it began; not before its engine ran
    fixes?: number;
    lag_s: number | null; // of answers
    archive_lag_s: number | null;
    lag_segments: number | null;
    why: string | null;
    latency_ms: { p50: number | null; p95: number | null; p99: number | null } | null;
    rejects: Record<string, number> | null;
    sources: Record<string, unknown>[];
    workers?: WorkerState[]; // none in reports
    warnings?: string[]; // of fixes that came too late; none in reports
    latest_event_ts: string | null;
    answers_until?: string | null; // the last time that a question can be about
    objects: number | null;
}

export interface QueryState {
    name: string;
    version: number;
    stream: string;
    text: string;
    kind: string;
    state: string;
    why: string | null;
    members: number | null;
    changes_per_min: number | null;
    came?: number | null; // into the answer, in the last `came_over_s` of its stream; not in reports
    left?: number | null;
}

export interface LayerState {
    name: string;
    version: number;
    features: number;
    kinds: Record<string, number>;
    extent: Box | null;
    space?: Space;
    attribution: string | null; // to be shown with whatever shows the layer
    recorded_zoom?: number; // of a report: how far its tiles go
}

export interface Alert {
    ts: string;
    stream: string;
    level: string;
    text: string;
}

export interface PageState {
    now: string;
    version: string;
    streams: StreamState[];
    queries: QueryState[];
    layers: LayerState[];
    base_map?: { url: string; attribution: string | null } | null; // tiles below the layers; none in reports
    deliveries: Record<string, unknown>[];
    alerts: Alert[];
    broken_streams: Record<string, string>; // names, and what is wrong with their settings
}

/** One change of an answer, as the server's events have it. */
export interface Change {
    id: string;
    stream: string;
    query: string;
    query_version: number;
    object: string;
    partner: string | null;
    sign: number;
    cause: string;
    event_ts: string;
    value?: number | null;
    fields?: Record<string, unknown> | null;
}

/** The last changes up to a moment, the newest first, and how many came and left in the hour before. */
export interface ChangesBefore {
    to: string;
    entered: number;
    left: number;
    rows: Change[];
}

/** A row of an answer: a member, and where it was last. */
export interface Member {
    object: string;
    partner: string | null;
    value?: number | null;
    fields?: Record<string, unknown> | null;
}

/** A stay in the answer of a query. */
export interface Visit {
    object: string;
    partner: string | null;
    from_ts: string;
    to_ts: string | null;
    query?: string;
    cause_in?: string | null;
    cause_out?: string | null;
    value?: number | null;
    lon?: number | null;
    lat?: number | null;
}

export interface ShapeProperties {
    role: 'region' | 'centre' | 'area' | 'partner';
    follows: string | null;
    follows_at?: Place | null;
}

/** Regions of a query; one that goes with an object that is nowhere has no geometry. */
export type Shapes = GeoJSON.FeatureCollection<GeoJSON.Geometry | null, ShapeProperties>;
