// Stays on a line of time: one row for each of the longest, the longest first. A row can be chosen.
import type { JSX } from 'preact';
import { HOUR_MS, MINUTE_MS, sayDuration, sayInstant, sayMoment, sayTime, sayZoneOf } from '../data/times';
import { keyOf, type Stay } from '../data/visits';

const MOST_ROWS = 12;
const LETTERS = [8, 14] as const; // of names that are seen whole, at least and at most
const SHORT_MS = 10 * MINUTE_MS; // seconds matter in what is shorter

interface Props {
    stays: Stay[];
    from_ms: number;
    until_ms: number;
    dwell_ms: number | null; // who stayed less is shown paler
    chosen: Stay | null;
    onChoose: (stay: Stay | null) => void;
}

type RowProps = Omit<Props, 'stays' | 'chosen'> & { stay: Stay; isChosen: boolean };

const isShort = (stay: Stay, dwell_ms: number | null): boolean =>
    dwell_ms !== null && stay.to_ms - stay.from_ms < dwell_ms;
const whoOf = (stay: Stay): string => (stay.partner === null ? stay.object : `${stay.object} · ${stay.partner}`);
const lengthOf = (stay: Stay): string => sayDuration(stay.to_ms - stay.from_ms);

function titleOf(stay: Stay, dwell_ms: number | null): string {
    const end = stay.isOpen ? 'and is still in' : `to ${sayInstant(stay.to_ms)}`;
    const short = isShort(stay, dwell_ms) ? ', less than the dwell' : '';
    return `${whoOf(stay)}: ${lengthOf(stay)}, from ${sayInstant(stay.from_ms)} ${end}${short}`;
}

/** The stay as a bar on the line of time. */
function Bar({ stay, from_ms, until_ms }: { stay: Stay; from_ms: number; until_ms: number }): JSX.Element {
    const whole = Math.max(1, until_ms - from_ms);
    const left = (100 * Math.max(0, stay.from_ms - from_ms)) / whole;
    const width = (100 * (stay.to_ms - Math.max(from_ms, stay.from_ms))) / whole;
    const style = { left: `${left}%`, width: `${Math.max(0.6, width)}%` };
    return (
        <span class="bar" aria-hidden="true">
            <i style={style} class={stay.isOpen ? 'open' : ''} />
        </span>
    );
}

function Row({ stay, from_ms, until_ms, dwell_ms, isChosen, onChoose }: RowProps): JSX.Element {
    return (
        <li>
            <button
                class={isShort(stay, dwell_ms) ? 'stay short' : 'stay'}
                aria-pressed={isChosen}
                title={titleOf(stay, dwell_ms)}
                onClick={() => onChoose(isChosen ? null : stay)}
            >
                <span class="who">{whoOf(stay)}</span>
                <Bar stay={stay} from_ms={from_ms} until_ms={until_ms} />
                <span class="length">{lengthOf(stay)}</span>
            </button>
        </li>
    );
}

/** Times below the bars: beginning, middle, end. */
function Ticks({ from_ms, until_ms }: { from_ms: number; until_ms: number }): JSX.Element {
    const length_ms = until_ms - from_ms;
    const sayTick = (ms: number): string => {
        if (length_ms > 36 * HOUR_MS) return sayMoment(ms).slice(5, 16);
        return length_ms < SHORT_MS ? sayTime(ms) : sayTime(ms).slice(0, 5);
    };
    return (
        <div class="ticks" aria-hidden="true">
            <span class="quiet">{sayZoneOf(from_ms, until_ms)}</span>
            <span class="scale">
                {[from_ms, (from_ms + until_ms) / 2, until_ms].map((ms) => (
                    <i key={ms}>{sayTick(ms)}</i>
                ))}
            </span>
            <span />
        </div>
    );
}

/** What the looks of the bars mean, of those that are there. */
function Looks({ stays, dwell_ms }: { stays: Stay[]; dwell_ms: number | null }): JSX.Element | null {
    const looks = [
        stays.some((one) => one.isOpen) ? 'striped: still in' : '',
        stays.some((one) => isShort(one, dwell_ms)) ? 'pale: less than the dwell' : '',
    ].filter((one) => one !== '');
    return looks.length === 0 ? null : <p class="quiet">{looks.join(' · ')}</p>;
}

/** The longest stays in an interval. */
export function Timeline(props: Props): JSX.Element {
    const more = props.stays.length - MOST_ROWS;
    const shown = props.stays.slice(0, MOST_ROWS);
    const [least, most] = LETTERS;
    const letters = Math.min(most, Math.max(least, ...shown.map((one) => whoOf(one).length)));
    return (
        <div class="timeline" style={{ '--who': `${letters + 1}ch` }}>
            <ol aria-label="The longest stays, the longest first">
                {shown.map((stay) => (
                    <Row key={keyOf(stay)} {...props} stay={stay} isChosen={props.chosen === stay} />
                ))}
            </ol>
            <Ticks from_ms={props.from_ms} until_ms={props.until_ms} />
            <Looks stays={shown} dwell_ms={props.dwell_ms} />
            {more > 0 ? <p class="quiet">and {more.toLocaleString('en')} shorter ones</p> : null}
        </div>
    );
}
