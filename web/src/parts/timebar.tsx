// The line of time below the map: now, or a moment of the past, which can play.
import type { JSX, TargetedEvent } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { app, latest_ms } from '../app';
import { recording } from '../data/recorded';
import { useStore } from '../data/store';
import { DAY_MS, HOUR_MS, MINUTE_MS, msOf, sayMoment } from '../data/times';
import { goTo, sayWhere } from '../moments';

const LIVE_SPANS: [string, number][] = [
    ['10 min', 10 * MINUTE_MS],
    ['1 h', HOUR_MS],
    ['6 h', 6 * HOUR_MS],
    ['24 h', DAY_MS],
    ['7 days', 7 * DAY_MS],
];
// A report shows all of what it is about.
const SPANS: [string, number][] =
    recording === null ? LIVE_SPANS : [['all', Date.parse(recording.until) - Date.parse(recording.since)]];
const END = recording === null ? 'Now' : 'End';
const STEPS = 240;
const PLAY_MS = 700;

/** The end of the line: the newest time that there is, of a report its end. */
const end_ms = (): number => (recording === null ? (latest_ms() ?? Date.now()) : Date.parse(recording.until));

/** Plays: every so often a step further, until now is reached. */
function usePlay(isPlaying: boolean, stop: () => void, step_ms: number): void {
    useEffect(() => {
        if (!isPlaying) return undefined;
        const timer = setInterval(() => {
            const next = (app.get().at_ms ?? Date.now()) + step_ms;
            const end = end_ms();
            if (next >= end) stop();
            goTo(next >= end ? null : next);
        }, PLAY_MS);
        return () => clearInterval(timer);
    }, [isPlaying, step_ms]);
}

function Moment({ at_ms }: { at_ms: number | null }): JSX.Element {
    const take = (event: TargetedEvent<HTMLInputElement>): void => {
        const ms = msOf(event.currentTarget.value.trim().replace(' ', 'T'));
        if (Number.isNaN(ms)) event.currentTarget.value = value;
        else goTo(ms);
    };
    const value = sayMoment(at_ms ?? latest_ms() ?? Date.now());
    return (
        <label class="moment">
            <input type="text" size={19} aria-label="The moment, in UTC" value={value} onChange={take} />
            UTC
        </label>
    );
}

/** The line itself; its right end is now. */
function Slider({ at_ms, span_ms }: { at_ms: number | null; span_ms: number }): JSX.Element {
    const end = end_ms();
    const step_ms = span_ms / STEPS;
    const position = Math.max(0, Math.min(STEPS, Math.round(((at_ms ?? end) - (end - span_ms)) / step_ms)));
    const slide = (k: number): void =>
        goTo(k >= STEPS ? null : Math.round((end - span_ms + k * step_ms) / 1000) * 1000);
    return (
        <input
            type="range"
            min={0}
            max={STEPS}
            value={position}
            aria-label="Moment"
            aria-valuetext={at_ms === null ? 'now' : sayMoment(at_ms)}
            onInput={(event) => slide(event.currentTarget.valueAsNumber)}
            onChange={sayWhere}
        />
    );
}

function Span({ span_ms, onChange }: { span_ms: number; onChange: (span_ms: number) => void }): JSX.Element {
    return (
        <select
            aria-label="How far back"
            value={span_ms}
            onChange={(event) => onChange(Number(event.currentTarget.value))}
        >
            {SPANS.map(([label, ms]) => (
                <option key={ms} value={ms}>
                    {label}
                </option>
            ))}
        </select>
    );
}

export function TimeBar(): JSX.Element {
    const at_ms = useStore(app, (one) => one.at_ms);
    useStore(app, (one) => one.seen_ms); // the end of the line moves on
    const [span_ms, setSpan] = useState(recording === null ? HOUR_MS : SPANS[0]![1]);
    const [isPlaying, setPlaying] = useState(false);
    usePlay(isPlaying, () => setPlaying(false), span_ms / STEPS);
    const play = (): void => {
        if (!isPlaying && at_ms === null) goTo(end_ms() - span_ms);
        setPlaying(!isPlaying);
    };
    return (
        <div class={at_ms === null ? 'timebar' : 'timebar past'} role="group" aria-label="Time">
            <button onClick={play} aria-label={isPlaying ? 'Pause' : 'Play the past'}>
                {isPlaying ? '❚❚' : '►'}
            </button>
            <Slider at_ms={at_ms} span_ms={span_ms} />
            <Span span_ms={span_ms} onChange={setSpan} />
            <Moment at_ms={at_ms} />
            <button
                class={at_ms === null ? 'now on' : 'now'}
                aria-pressed={at_ms === null}
                onClick={() => {
                    setPlaying(false);
                    goTo(null);
                }}
            >
                {END}
            </button>
        </div>
    );
}
