// Which moment is looked at: now, or one of the past, which can play.
import { app, say } from './app';
import { askAnswers } from './choosing';
import { sayInstant } from './data/times';
import { forgetPast, showPast } from './session';

let waiting: ReturnType<typeof setTimeout> | undefined;
const ANSWERS_AFTER_MS = 250; // while the slider is dragged only objects follow

/** Goes to a moment; null: back to now. */
export function goTo(at_ms: number | null): void {
    if (app.get().at_ms === at_ms) return;
    app.set({ at_ms });
    clearTimeout(waiting);
    waiting = setTimeout(askAnswers, ANSWERS_AFTER_MS);
    if (at_ms === null) {
        say('Back to now.');
        forgetPast();
    } else {
        void showPast(at_ms);
    }
}

export const sayWhere = (): void => {
    const { at_ms } = app.get();
    if (at_ms !== null) say(`As of ${sayInstant(at_ms)}`);
};
