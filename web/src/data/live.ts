// Where objects are, as the server packs them: a header in JSON, then one array after the other (docs/server.md).

export interface Positions {
    cursor: string;
    isWhole: boolean; // everything there is; what was known before counts no more
    names: { from: number; names: string[] };
    latestEvent: string | null;
    lag_s: number | null;
    index: Uint32Array;
    lon: Float64Array;
    lat: Float64Array;
    event_s: Float64Array;
    heading: Float32Array;
    speed: Float32Array;
}

interface Header {
    cursor: string;
    reset: boolean;
    count: number;
    names: { from: number; names: string[] };
    latest_event_ts: string | null;
    lag_s: number | null;
}

const LENGTH_BYTES = 4;
const padded = (bytes: number): number => Math.ceil(bytes / 8) * 8;

/** Unpacks an answer of /page/live or /page/past. The arrays are views of its bytes: nothing is copied. */
export function unpackPositions(bytes: ArrayBuffer): Positions {
    const length = new DataView(bytes).getUint32(0, true);
    const text = new TextDecoder().decode(new Uint8Array(bytes, LENGTH_BYTES, length));
    const header = JSON.parse(text) as Header;
    const n = header.count;
    let at = LENGTH_BYTES + length;
    const place = (size: number): number => {
        const from = at;
        at += padded(n * size);
        return from;
    };
    return {
        cursor: header.cursor,
        isWhole: header.reset,
        names: header.names,
        latestEvent: header.latest_event_ts,
        lag_s: header.lag_s,
        index: new Uint32Array(bytes, place(4), n),
        lon: new Float64Array(bytes, place(8), n),
        lat: new Float64Array(bytes, place(8), n),
        event_s: new Float64Array(bytes, place(8), n),
        heading: new Float32Array(bytes, place(4), n),
        speed: new Float32Array(bytes, place(4), n),
    };
}

function grown<T extends Float64Array | Float32Array>(old: T, size: number, fill = 0): T {
    const larger = new (old.constructor as new (n: number) => T)(size);
    larger.set(old);
    larger.fill(fill, old.length);
    return larger;
}

export const NO_DIRECTION = -1;

/** The objects of one stream: where each was, where it goes to, and where it is shown meanwhile. */
export class Objects {
    names: string[] = [];
    count = 0;
    shown: Float64Array<ArrayBufferLike> = new Float64Array(0); // lon, lat, lon, lat, ..
    event_s: Float64Array<ArrayBufferLike> = new Float64Array(0);
    heading: Float32Array<ArrayBufferLike> = new Float32Array(0);
    speed: Float32Array<ArrayBufferLike> = new Float32Array(0);
    direction: Float32Array<ArrayBufferLike> = new Float32Array(0); // the heading of who moves; of others NO_DIRECTION
    private from: Float64Array<ArrayBufferLike> = new Float64Array(0);
    private to: Float64Array<ArrayBufferLike> = new Float64Array(0);
    private moved: Uint32Array<ArrayBufferLike> = new Uint32Array(0);
    private wasCutShort = false; // news came before the last frame of a move: its end is not drawn yet
    private began_ms = 0;
    private takes_ms = 0;
    private byName = new Map<string, number>();

    /** Where an object is shown; null of one that is gone or was never there. */
    placeOf(name: string): [number, number] | null {
        const index = this.byName.get(name);
        if (index === undefined || Number.isNaN(this.shown[2 * index])) return null;
        return [this.shown[2 * index]!, this.shown[2 * index + 1]!];
    }

    /** Where an object goes to, in degrees from north to the east; NO_DIRECTION of one that stands, or is not known. */
    directionOf(name: string): number {
        const index = this.byName.get(name);
        return index === undefined ? NO_DIRECTION : this.direction[index]!;
    }

    /** Whether it is known of one at least where it goes to. */
    isAnyMoving(): boolean {
        for (let i = 0; i < this.count; i += 1) if (this.direction[i]! >= 0) return true;
        return false;
    }

    /** Takes what came; who moved goes there within takes_ms. */
    take(news: Positions, now_ms: number, takes_ms: number): void {
        this.wasCutShort ||= this.moved.length > 0;
        this.finish();
        const before = news.isWhole ? this.forget() : null;
        this.learn(news.names.from, news.names.names);
        for (let i = 0; i < news.index.length; i += 1) this.put(news, i, before);
        this.moved = news.index.slice();
        this.began_ms = now_ms;
        this.takes_ms = takes_ms;
    }

    /** Whether `shown`, which is as of now, is to be drawn: something moves, or has come to where it goes. */
    move(now_ms: number): boolean {
        const isDue = this.moved.length > 0 || this.wasCutShort;
        this.glide(now_ms);
        this.wasCutShort = false;
        return isDue;
    }

    private glide(now_ms: number): void {
        if (this.moved.length === 0) return;
        const share = this.takes_ms === 0 ? 1 : Math.min(1, (now_ms - this.began_ms) / this.takes_ms);
        const { shown, from, to, moved } = this;
        for (let i = 0; i < moved.length; i += 1) {
            const at = 2 * moved[i]!;
            shown[at] = from[at]! + (to[at]! - from[at]!) * share;
            shown[at + 1] = from[at + 1]! + (to[at + 1]! - from[at + 1]!) * share;
        }
        if (share === 1) this.moved = new Uint32Array(0);
    }

    /** The nearest object within some degrees; longitudes count by the cosine of the latitude. */
    nearest(lon: number, lat: number, most_degrees: number): number | null {
        const shrink = Math.cos((lat * Math.PI) / 180);
        let best = most_degrees * most_degrees;
        let found: number | null = null;
        for (let i = 0; i < this.count; i += 1) {
            const dx = (this.shown[2 * i]! - lon) * shrink;
            const dy = this.shown[2 * i + 1]! - lat;
            const distance = dx * dx + dy * dy;
            if (distance < best) [best, found] = [distance, i];
        }
        return found;
    }

    private finish(): void {
        this.glide(Number.POSITIVE_INFINITY);
    }

    /** Forgets all objects; gives back where each was, so that it goes on from there. */
    private forget(): Map<string, [number, number]> {
        const places = new Map(
            this.names.map((name, i) => [name, [this.shown[2 * i]!, this.shown[2 * i + 1]!] as [number, number]]),
        );
        this.count = 0;
        this.names = [];
        this.byName.clear();
        this.event_s.fill(0);
        this.shown.fill(Number.NaN);
        this.direction.fill(NO_DIRECTION);
        return places;
    }

    private learn(from: number, names: string[]): void {
        for (const [i, name] of names.entries()) {
            this.names[from + i] = name;
            this.byName.set(name, from + i);
        }
        this.count = Math.max(this.count, this.names.length);
        this.makeRoom();
    }

    private makeRoom(): void {
        if (this.event_s.length >= this.count) return;
        const size = Math.max(1024, this.count, Math.ceil(this.event_s.length * 1.5));
        // Of who is gone the server tells the name alone: nothing is shown of it.
        for (const name of ['shown', 'from', 'to'] as const)
            this[name] = grown(this[name] as Float64Array, 2 * size, Number.NaN);
        this.event_s = grown(this.event_s as Float64Array, size);
        this.heading = grown(this.heading as Float32Array, size);
        this.speed = grown(this.speed as Float32Array, size);
        this.direction = grown(this.direction as Float32Array, size, NO_DIRECTION);
    }

    private put(news: Positions, i: number, before: Map<string, [number, number]> | null): void {
        const index = news.index[i]!;
        const at = 2 * index;
        const isNew = this.event_s[index] === 0;
        const old = isNew ? before?.get(this.names[index]!) : [this.shown[at]!, this.shown[at + 1]!];
        for (const [k, value] of [news.lon[i]!, news.lat[i]!].entries()) {
            // The server has no place of who is gone; who is back does not come from there.
            const isTravelling = old !== undefined && Number.isFinite(old[k]) && Number.isFinite(value);
            const from = isTravelling ? old[k]! : value;
            this.from[at + k] = from;
            this.shown[at + k] = from;
            this.to[at + k] = value;
        }
        this.event_s[index] = news.event_s[i]!;
        this.heading[index] = news.heading[i]!;
        this.speed[index] = news.speed[i]!;
        const isPointing = news.speed[i]! > 0 && Number.isFinite(news.heading[i]!);
        this.direction[index] = isPointing ? news.heading[i]! : NO_DIRECTION;
    }
}
