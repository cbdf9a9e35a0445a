// The line of time below the map: now, or a moment of the past, from which it can be replayed.
import type { JSX, TargetedEvent } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { app, latest_ms, say } from '../app';
import { recording } from '../data/recorded';
import { useStore } from '../data/store';
import {
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    momentOf,
    SECOND_MS,
    sayInstant,
    sayMoment,
    sayZone,
    zoneShown,
} from '../data/times';
import { goTo, sayWhere, SPEEDS, startReplay } from '../moments';

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
const SPEED = 60; // a minute in a second

/** The newest time that there is, of a report its end; null before the first fix. */
const newest_ms = (): number | null => (recording === null ? latest_ms() : Date.parse(recording.until));

/** The end of the line; it stands still while the past is looked at, so that the slider does not move by itself. */
function useEnd(at_ms: number | null): number {
    const held = useRef<number | null>(null);
    const newest = newest_ms();
    const isNow = held.current === null || at_ms === null || at_ms > held.current;
    if (newest !== null && isNow) held.current = newest;
    return held.current ?? Date.now();
}

/** How long the line is: as chosen, or as long as the moment that is looked at needs. */
function spanWith(chosen_ms: number, at_ms: number | null, end_ms: number): number {
    const needed_ms = at_ms === null ? 0 : end_ms - at_ms;
    if (needed_ms <= chosen_ms) return chosen_ms;
    return SPANS.find(([, ms]) => ms >= needed_ms)?.[1] ?? Math.ceil(needed_ms / DAY_MS) * DAY_MS;
}

/** Replays while it is wanted; from the moment on that is looked at, also when that is chosen meanwhile. */
function useReplay(isPlaying: boolean, speed: number, stop: () => void): void {
    const chosen = useRef(speed);
    chosen.current = speed;
    useEffect(() => {
        if (!isPlaying) return undefined;
        return startReplay(
            () => chosen.current,
            () => newest_ms() ?? Date.now(),
            stop,
        );
    }, [isPlaying]);
}

/** The moment in writing. What somebody types stays as it is until he is done, whatever comes from the server. */
function Moment({ at_ms }: { at_ms: number | null }): JSX.Element {
    const [typed, setTyped] = useState<string | null>(null);
    const take = (event: TargetedEvent<HTMLInputElement>): void => {
        const ms = momentOf(event.currentTarget.value);
        setTyped(null);
        if (Number.isNaN(ms)) event.currentTarget.value = value;
        else goTo(ms);
    };
    const shown_ms = at_ms ?? latest_ms() ?? Date.now();
    const value = sayMoment(shown_ms);
    return (
        <label class="moment">
            <input
                type="text"
                size={19}
                aria-label={`The moment, in ${zoneShown()}`}
                title={`Read in ${zoneShown()}, unless it says its zone`}
                value={typed ?? value}
                onInput={(event) => setTyped(event.currentTarget.value)}
                onChange={take}
                onBlur={() => setTyped(null)}
            />
            <span title={zoneShown()}>{sayZone(shown_ms)}</span>
        </label>
    );
}

interface Line {
    at_ms: number | null;
    end_ms: number;
    span_ms: number;
}

/** The line itself; its right end is now. */
function Slider({ at_ms, end_ms, span_ms }: Line): JSX.Element {
    const begin_ms = end_ms - span_ms;
    const step_ms = span_ms / STEPS;
    const position = Math.max(0, Math.min(STEPS, Math.round(((at_ms ?? end_ms) - begin_ms) / step_ms)));
    const slide = (k: number): void => {
        const moment = Math.ceil((begin_ms + k * step_ms) / SECOND_MS) * SECOND_MS; // never before the line begins
        goTo(k >= STEPS ? null : Math.min(moment, end_ms));
    };
    return (
        <input
            type="range"
            min={0}
            max={STEPS}
            value={position}
            aria-label="Moment"
            aria-valuetext={at_ms === null ? 'now' : sayInstant(at_ms)}
            onInput={(event) => slide(event.currentTarget.valueAsNumber)}
            onChange={sayWhere}
        />
    );
}

function Span({ span_ms, onChange }: { span_ms: number; onChange: (span_ms: number) => void }): JSX.Element {
    const days: [string, number] = [`${Math.ceil(span_ms / DAY_MS)} days`, span_ms];
    const shown = SPANS.some(([, ms]) => ms === span_ms) ? SPANS : [...SPANS, days];
    return (
        <select
            aria-label="How far back"
            value={span_ms}
            onChange={(event) => onChange(Number(event.currentTarget.value))}
        >
            {shown.map(([label, ms]) => (
                <option key={ms} value={ms}>
                    {label}
                </option>
            ))}
        </select>
    );
}

function Speed({ speed, onChange }: { speed: number; onChange: (speed: number) => void }): JSX.Element {
    return (
        <select
            aria-label="Speed of the replay"
            title="How many times as fast as it was the past is replayed"
            value={speed}
            onChange={(event) => onChange(Number(event.currentTarget.value))}
        >
            {SPEEDS.map((one) => (
                <option key={one} value={one}>
                    {one}×
                </option>
            ))}
        </select>
    );
}

function NowButton({ isNow, onClick }: { isNow: boolean; onClick: () => void }): JSX.Element {
    return (
        <button class={isNow ? 'now on' : 'now'} aria-pressed={isNow} onClick={onClick}>
            {END}
        </button>
    );
}

export function TimeBar(): JSX.Element {
    const at_ms = useStore(app, (one) => one.at_ms);
    useStore(app, (one) => one.seen_ms); // the end of the line moves on
    const [chosen_ms, setChosen] = useState(recording === null ? HOUR_MS : SPANS[0]![1]);
    const [isPlaying, setPlaying] = useState(false);
    const end_ms = useEnd(at_ms);
    const span_ms = spanWith(chosen_ms, at_ms, end_ms);
    const [speed, setSpeed] = useState(SPEED);
    useReplay(isPlaying, speed, () => setPlaying(false));
    const play = (): void => {
        if (!isPlaying && at_ms === null) goTo(end_ms - span_ms);
        if (isPlaying) sayWhere();
        else say(`Replaying ${speed} times as fast as it was.`);
        setPlaying(!isPlaying);
    };
    const goNow = (): void => {
        setPlaying(false);
        goTo(null);
    };
    const setSpan = (ms: number): void => {
        setChosen(ms);
        if (at_ms !== null && at_ms < end_ms - ms) goTo(end_ms - ms); // a shorter line begins later
    };
    return (
        <div class={at_ms === null ? 'timebar' : 'timebar past'} role="group" aria-label="Time">
            <button onClick={play} title="Replay" aria-label={isPlaying ? 'Pause' : 'Play the past'}>
                {isPlaying ? '❚❚' : '►'}
            </button>
            <Speed speed={speed} onChange={setSpeed} />
            <Slider at_ms={at_ms} end_ms={end_ms} span_ms={span_ms} />
            <Span span_ms={span_ms} onChange={setSpan} />
            <Moment at_ms={at_ms} />
            <NowButton isNow={at_ms === null} onClick={goNow} />
        </div>
    );
}
