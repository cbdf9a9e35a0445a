// A report: this page in one file, with answers that were recorded in the place of a server.
//
//   <script type="application/json" id="recording">
//   {"made": .., "since": .., "until": .., "replies": {"/page/state": ["application/json", "H4sIA.."], ..}}
//
// An answer as of a moment is recorded for some moments (`/page/past/buses?at=..`); the newest one up to the moment that
// is asked for counts. Bodies are packed by gzip, as base64.

import { splitEvents } from './events';
import { applyTo, membersOf } from './members';
import type { Change, Member } from './types';

export interface Recording {
    made: string;
    since: string;
    until: string;
    explained: number; // so many members of each answer have their reasons and all that is known of them
    replies: Record<string, [media: string, body: string]>;
}

const EMPTY_HEADER = {
    cursor: 'recorded',
    reset: false,
    count: 0,
    names: { from: 0, names: [] },
    latest_event_ts: null,
    lag_s: null,
};

function readRecording(): Recording | null {
    const told = document.getElementById('recording');
    return told === null ? null : (JSON.parse(told.textContent ?? 'null') as Recording);
}

/** What this page was made from; null: a server answers. */
export const recording = readRecording();

/** The text of a part of a report, as the address of a file; of a page that a server gives, the address there. */
export function addressOfPart(id: string, media: string, served: string): string {
    const part = document.getElementById(id);
    return part === null ? served : URL.createObjectURL(new Blob([part.textContent ?? ''], { type: media }));
}

// Which parameters an answer is recorded by, beside a moment; others of a request do not count.
const KEYS = ['object', 'v'];

/** What is asked for, without the ways in which an address can be written. */
function questionOf(path: string): string {
    const asked = new URL(path, 'http://recorded');
    const known = KEYS.filter((key) => asked.searchParams.has(key)).map(
        (key) => `${key}=${asked.searchParams.get(key)}`,
    );
    return [decodeURIComponent(asked.pathname), ...known].join('\n');
}

interface Reply {
    at_ms: number;
    reply: [media: string, body: string];
}

/** All that is recorded, by question; of each the oldest first. */
function sortReplies(): Map<string, Reply[]> {
    const sorted = new Map<string, Reply[]>();
    for (const [path, reply] of Object.entries(recording?.replies ?? {})) {
        const at = new URL(path, 'http://recorded').searchParams.get('at');
        const at_ms = at === null ? Number.POSITIVE_INFINITY : Date.parse(at); // without a moment: at the end
        const question = questionOf(path);
        sorted.set(
            question,
            [...(sorted.get(question) ?? []), { at_ms, reply }].sort((a, b) => a.at_ms - b.at_ms),
        );
    }
    return sorted;
}

const replies = sortReplies();

function recordedFor(path: string): Reply['reply'] | null {
    const all = replies.get(questionOf(path)) ?? [];
    const at = new URL(path, 'http://recorded').searchParams.get('at');
    const found = at === null ? all.at(-1) : (all.findLast((one) => one.at_ms <= Date.parse(at)) ?? all[0]);
    return found?.reply ?? null;
}

/** Who was in the answer of a query at first, and what changed from then on. */
async function courseOf(query: string): Promise<{ answer: { rows: Member[] }; changes: Change[] } | null> {
    const first = await recordedReply(`/v1/answers/${query}?at=${encodeURIComponent(recording!.since)}&first`);
    const told = await recordedReply(`/v1/changes/${query}`);
    if (first === null || told === null) return null;
    const changes = splitEvents(await told.text()).events.map(({ data }) => JSON.parse(data) as Change);
    return { answer: (await first.json()) as { rows: Member[] }, changes };
}

/** Who was in the answer of a query at a moment. */
async function answerAt(query: string, at: string | null): Promise<Response | null> {
    const course = await courseOf(query);
    if (course === null) return null;
    const until_ms = at === null ? Number.POSITIVE_INFINITY : Date.parse(at);
    const members = membersOf(course.answer.rows);
    for (const change of course.changes) {
        if (Date.parse(change.event_ts) > until_ms) break;
        applyTo(members, change);
    }
    return Response.json({ ...course.answer, rows: [...members.values()] });
}

/** How many were in over all of a report, by the stream's time: seconds, members. */
export async function recordedSeries(query: string): Promise<[number[], number[]]> {
    const course = await courseOf(encodeURIComponent(query));
    if (course === null) return [[], []];
    const members = membersOf(course.answer.rows);
    const counts = new Map([[Date.parse(recording!.since) / 1000, members.size]]);
    for (const change of course.changes) {
        applyTo(members, change);
        counts.set(Date.parse(change.event_ts) / 1000, members.size);
    }
    counts.set(Date.parse(recording!.until) / 1000, members.size);
    const sorted = [...counts].sort(([a], [b]) => a - b);
    return [sorted.map(([time_s]) => time_s), sorted.map(([, count]) => count)];
}

/** The answer that was recorded to a request; null: none was. */
export async function recordedReply(path: string): Promise<Response | null> {
    const live = /^\/page\/live\/([^?]+)(\?since=)?/.exec(path);
    if (live !== null && live[2] !== undefined) return new Response(emptyPositions());
    const answer = /^\/v1\/answers\/([^?]+)(?:\?at=([^&]+))?$/.exec(path);
    if (answer !== null)
        return await answerAt(answer[1]!, answer[2] === undefined ? null : decodeURIComponent(answer[2]));
    const found = recordedFor(live === null ? path : `/page/past/${live[1]}`);
    if (found === null) return null;
    const [media, body] = found;
    const packed = await (await fetch(`data:application/gzip;base64,${body}`)).blob();
    const plain = packed.stream().pipeThrough(new DecompressionStream('gzip'));
    return new Response(plain, { headers: { 'Content-Type': media } });
}

/** Positions in which nothing is new, as /page/live packs them. */
function emptyPositions(): ArrayBuffer {
    const text = JSON.stringify(EMPTY_HEADER);
    const length = Math.ceil((text.length + 4) / 8) * 8 - 4;
    const bytes = new Uint8Array(4 + length);
    new DataView(bytes.buffer).setUint32(0, length, true);
    bytes.set(new TextEncoder().encode(text.padEnd(length)), 4);
    return bytes.buffer;
}
