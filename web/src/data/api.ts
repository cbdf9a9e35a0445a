// Requests to the server that gave out this page, and to no other.

import { recordedReply, recording } from './recorded';

/** What the server says of a request that it does not carry out, in its own words. */
export class Refused extends Error {
    constructor(
        readonly status: number,
        message: string,
        readonly hint: string,
        readonly body: Record<string, unknown>,
    ) {
        super(message);
    }
}

/** The server did not answer at all. */
export class Unreachable extends Error {}

const TOKEN = 'fairway-token';

export function keepToken(token: string): void {
    sessionStorage.setItem(TOKEN, token); // until the window is closed, and for no other window
}

function headersWith(more: Record<string, string>): Record<string, string> {
    const token = sessionStorage.getItem(TOKEN);
    return token === null ? more : { ...more, Authorization: `Bearer ${token}` };
}

/** The answer to a request; what is refused is an error that says why. */
export async function request(
    path: string,
    how: RequestInit & { headers?: Record<string, string> } = {},
): Promise<Response> {
    if (recording !== null) return await fromRecording(path);
    let reply: Response;
    try {
        reply = await fetch(path, { ...how, headers: headersWith(how.headers ?? {}) });
    } catch (error) {
        if (error instanceof DOMException && error.name === 'AbortError') throw error;
        throw new Unreachable('no answer from the server');
    }
    if (reply.ok) return reply;
    const body = (await reply.json().catch(() => ({}))) as Record<string, unknown>;
    throw new Refused(
        reply.status,
        String(body['error'] ?? `the server answers ${reply.status}`),
        String(body['hint'] ?? ''),
        body,
    );
}

async function fromRecording(path: string): Promise<Response> {
    const reply = await recordedReply(path);
    if (reply !== null) return reply;
    const isOfOne = path.startsWith('/page/object/') || path.startsWith('/v1/why/');
    const what = isOfOne
        ? `of each answer a report explains ${recording!.explained} members`
        : 'this is not in the report';
    throw new Refused(404, what, '`fairway serve` on the same home shows it', {});
}

export async function getJson<T>(path: string, signal?: AbortSignal): Promise<T> {
    return (await (await request(path, signal ? { signal } : {})).json()) as T;
}

export async function getBytes(path: string, signal?: AbortSignal): Promise<ArrayBuffer> {
    return await (await request(path, signal ? { signal } : {})).arrayBuffer();
}

export async function sendText<T>(method: string, path: string, text: string, signal?: AbortSignal): Promise<T> {
    const how = { method, body: text, headers: { 'Content-Type': 'text/plain' } };
    return (await (await request(path, signal ? { ...how, signal } : how)).json()) as T;
}

export async function sendJson<T>(method: string, path: string, value: unknown, signal?: AbortSignal): Promise<T> {
    const how = { method, body: JSON.stringify(value), headers: { 'Content-Type': 'application/json' } };
    return (await (await request(path, signal ? { ...how, signal } : how)).json()) as T;
}

/** A path of its parts, each escaped, with parameters where they are known. */
export function pathOf(parts: string[], params: Record<string, string | number | null | undefined> = {}): string {
    const known = Object.entries(params).filter(([, value]) => value !== null && value !== undefined);
    const asked = new URLSearchParams(known.map(([name, value]) => [name, String(value)])).toString();
    return '/' + parts.map(encodeURIComponent).join('/') + (asked === '' ? '' : `?${asked}`);
}

export const isAborted = (error: unknown): boolean => error instanceof DOMException && error.name === 'AbortError';

export function wordsOf(error: unknown): string {
    if (error instanceof Refused) return error.hint === '' ? error.message : `${error.message} (${error.hint})`;
    return error instanceof Error ? error.message : String(error);
}
