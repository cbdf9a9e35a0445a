// Changes of a query as they happen: server-sent events read by fetch, which can show a token and goes on behind the
// last event that came, whatever became of the server meanwhile.
import { getJson, isAborted, pathOf, Refused, request } from './api';
import { splitEvents, type SentEvent } from './events';
import { recording } from './recorded';
import type { Change } from './types';

export type Followed = 'connecting' | 'live' | 'lost' | 'refused';

export interface Listener {
    onChanges(changes: Change[]): void;
    onState(state: Followed, words: string): void;
}

interface Status {
    stream: string;
    position?: number; // none before its engine ran
}

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 5000;

/** Follows the changes of a query until it is stopped. */
export class Follower {
    private readonly stopping = new AbortController();
    private last: string | null = null;
    private since: number | null = null; // where the engine was before this began: what comes behind it is told
    private wait_ms = FIRST_WAIT_MS;

    constructor(
        private readonly query: string,
        private readonly listener: Listener,
    ) {
        void this.run();
    }

    stop(): void {
        this.stopping.abort();
    }

    private async run(): Promise<void> {
        while (!this.stopping.signal.aborted) {
            try {
                await this.listen();
                if (recording !== null) return; // what a report has of it has been told
                this.listener.onState('lost', 'the stream of changes ended; trying again');
            } catch (error) {
                if (isAborted(error)) return;
                if (error instanceof Refused && error.status < 500 && error.status !== 429) {
                    this.listener.onState('refused', error.message);
                    return;
                }
                this.listener.onState('lost', 'no answer from the server; trying again');
            }
            await new Promise((done) => setTimeout(done, this.wait_ms));
            this.wait_ms = Math.min(LONGEST_WAIT_MS, this.wait_ms * 1.6);
        }
    }

    private async listen(): Promise<void> {
        const headers: Record<string, string> = this.last === null ? {} : { 'Last-Event-ID': this.last };
        if (this.since === null) this.since = await this.positionNow();
        const path = pathOf(['v1', 'changes', this.query], { since: this.since });
        const reply = await request(path, { headers, signal: this.stopping.signal });
        this.listener.onState('live', '');
        this.wait_ms = FIRST_WAIT_MS;
        const reader = reply.body!.pipeThrough(new TextDecoderStream()).getReader();
        let rest = '';
        for (;;) {
            const { done, value } = await reader.read();
            if (done) return;
            const split = splitEvents(rest + value);
            rest = split.rest;
            this.tell(split.events);
        }
    }

    /**
     * The last position that the engine of the query's stream has done: status says the one that comes next. Who is in is
     * asked for later, so no change falls between.
     */
    private async positionNow(): Promise<number> {
        if (recording !== null) return 0;
        const { stream } = await getJson<{ stream: string }>(
            pathOf(['v1', 'queries', this.query]),
            this.stopping.signal,
        );
        const { streams } = await getJson<{ streams: Status[] }>('/v1/status', this.stopping.signal);
        const next = streams.find((one) => one.stream === stream)?.position ?? 0;
        return Math.max(next - 1, 0);
    }

    private tell(events: SentEvent[]): void {
        const changes: Change[] = [];
        for (const one of events) {
            if (one.id !== null) this.last = one.id;
            if (one.event === 'change') changes.push(JSON.parse(one.data) as Change);
        }
        if (changes.length > 0) this.listener.onChanges(changes);
    }
}
