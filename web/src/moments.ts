// Which moment is looked at: now, or one of the past, which can be replayed.
import { app, say } from './app';
import { askAnswers } from './choosing';
import { sayInstant } from './data/times';
import { forgetPast, PAST_MS, showPast } from './session';

let waiting: ReturnType<typeof setTimeout> | undefined;
const ANSWERS_AFTER_MS = 250; // while the slider is dragged only objects follow
const STEP_MS = 1000; // between two moments of a replay, or as long as the server needs for one

export const SPEEDS = [1, 10, 60, 600];

let shown: Promise<void> = Promise.resolve(); // the last moment of a replay

/** Goes to a moment; null: back to now. */
export function goTo(at_ms: number | null): void {
    if (app.get().at_ms === at_ms) return;
    app.set({ at_ms });
    clearTimeout(waiting);
    waiting = setTimeout(() => void askAnswers(), ANSWERS_AFTER_MS);
    if (at_ms === null) {
        say('Back to now.');
        forgetPast();
    } else {
        void showPast(at_ms, PAST_MS);
    }
}

export const sayWhere = (): void => {
    const { at_ms } = app.get();
    if (at_ms !== null) say(`As of ${sayInstant(at_ms)}`);
};

/**
 * Replays from the moment that is looked at, `speed` times as fast as it was, until `end_ms`; gives what stops it.
 *
 * The next moment is asked for when the one before is shown: where the server is slow steps are longer, and the speed
 * stays. Objects glide from one to the next.
 */
export function startReplay(speed: () => number, end_ms: () => number, onEnd: () => void): () => void {
    let isOver = false;
    const run = async (): Promise<void> => {
        await shown; // what a replay asks for that was stopped
        let before = performance.now();
        while (!isOver) {
            await new Promise((done) => setTimeout(done, Math.max(0, before + STEP_MS - performance.now())));
            if (isOver) return;
            const took_ms = performance.now() - before;
            before += took_ms;
            const next_ms = (app.get().at_ms ?? end_ms()) + took_ms * speed();
            if (next_ms >= end_ms()) {
                onEnd();
                goTo(null);
                return;
            }
            shown = showMoment(next_ms, took_ms);
            await shown;
        }
    };
    void run();
    return () => {
        isOver = true;
    };
}

/** Shows a moment whole: where objects were, then who was in, one request after the other. */
async function showMoment(at_ms: number, takes_ms: number): Promise<void> {
    clearTimeout(waiting);
    app.set({ at_ms });
    await showPast(at_ms, takes_ms);
    if (app.get().at_ms === at_ms) await askAnswers();
}
