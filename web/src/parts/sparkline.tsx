// A line of a few pixels: how a count went, minute by minute.
import type { JSX } from 'preact';
import type { Counts } from '../courses';
import { sayNumber } from '../data/times';

const WIDTH = 64;
const HEIGHT = 18;
const EDGE = 1.5; // of the line, which is not cut off at its ends

/** The line as a path of SVG, from zero up to the greatest count; what is not known is left out. */
export function pathOf(counts: Counts): string {
    const most = Math.max(1, ...counts.map((one) => one ?? 0));
    const step = (WIDTH - 2 * EDGE) / Math.max(1, counts.length - 1);
    const high = HEIGHT - 2 * EDGE;
    const points = counts.flatMap((one, k) =>
        one === null ? [] : [`${(EDGE + k * step).toFixed(1)} ${(EDGE + high * (1 - one / most)).toFixed(1)}`],
    );
    return points.length === 0 ? '' : `M${points.join('L')}`;
}

/** What the line says, in words. */
export function sayCourse(counts: Counts): string {
    const known = counts.filter((one) => one !== null);
    if (known.length === 0) return 'the last hour is not known yet';
    const span = known.length === counts.length ? 'over the last hour' : `over the last ${known.length} min`;
    const [least, most] = [Math.min(...known), Math.max(...known)];
    if (least === most) return `${span}: ${sayNumber(least)} in all the time`;
    return `${span}: from ${sayNumber(least)} to ${sayNumber(most)} in, now ${sayNumber(known.at(-1))}`;
}

export function Sparkline({ counts }: { counts: Counts }): JSX.Element {
    return (
        <svg class="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} width={WIDTH} height={HEIGHT} role="img">
            <title>{sayCourse(counts)}</title>
            <path d={pathOf(counts)} />
        </svg>
    );
}
