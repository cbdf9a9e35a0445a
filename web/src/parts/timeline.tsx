// Stays on a line of time: one row for each of the longest, the longest first. A row can be chosen.
import type { JSX } from 'preact';
import { sayDuration, sayMoment, sayTime } from '../data/times';
import type { Stay } from '../data/visits';

const MOST_ROWS = 12;

interface Props {
    stays: Stay[];
    from_ms: number;
    until_ms: number;
    dwell_ms: number | null; // who stayed less is shown paler
    chosen: Stay | null;
    onChoose: (stay: Stay | null) => void;
}

function Row({
    stay,
    from_ms,
    until_ms,
    dwell_ms,
    isChosen,
    onChoose,
}: Omit<Props, 'stays' | 'chosen'> & { stay: Stay; isChosen: boolean }): JSX.Element {
    const whole = Math.max(1, until_ms - from_ms);
    const left = (100 * Math.max(0, stay.from_ms - from_ms)) / whole;
    const width = (100 * (stay.to_ms - Math.max(from_ms, stay.from_ms))) / whole;
    const length = sayDuration(stay.to_ms - stay.from_ms);
    const who = stay.partner === null ? stay.object : `${stay.object} · ${stay.partner}`;
    const end = stay.isOpen ? 'and is still in' : `to ${sayTime(stay.to_ms)}`;
    const isShort = dwell_ms !== null && stay.to_ms - stay.from_ms < dwell_ms;
    const title = `${who}: ${length}, from ${sayMoment(stay.from_ms)} ${end}${isShort ? ', less than the dwell' : ''}`;
    return (
        <li>
            <button
                class={isShort ? 'stay short' : 'stay'}
                aria-pressed={isChosen}
                title={title}
                onClick={() => onChoose(isChosen ? null : stay)}
            >
                <span class="who">{who}</span>
                <span class="bar" aria-hidden="true">
                    <i
                        style={{ left: `${left}%`, width: `${Math.max(0.6, width)}%` }}
                        class={stay.isOpen ? 'open' : ''}
                    />
                </span>
                <span class="length">{length}</span>
            </button>
        </li>
    );
}

/** The longest stays in an interval. */
export function Timeline(props: Props): JSX.Element {
    const rows = props.stays.slice(0, MOST_ROWS);
    const middle_ms = (props.from_ms + props.until_ms) / 2;
    const ends = [props.from_ms, middle_ms, props.until_ms];
    const say =
        props.until_ms - props.from_ms > 36 * 3600_000
            ? (ms: number) => sayMoment(ms).slice(5, 16)
            : (ms: number) => sayTime(ms).slice(0, 5);
    return (
        <div class="timeline">
            <ol aria-label="The longest stays, the longest first">
                {rows.map((stay) => (
                    <Row
                        key={`${stay.object}/${stay.partner}/${stay.from_ms}`}
                        {...props}
                        stay={stay}
                        isChosen={props.chosen === stay}
                    />
                ))}
            </ol>
            <div class="ticks" aria-hidden="true">
                <span class="quiet">UTC</span>
                <span class="scale">
                    {ends.map((ms) => (
                        <i key={ms}>{say(ms)}</i>
                    ))}
                </span>
                <span />
            </div>
            {props.stays.length > MOST_ROWS ? (
                <p class="quiet">and {(props.stays.length - MOST_ROWS).toLocaleString('en')} shorter ones</p>
            ) : null}
        </div>
    );
}
