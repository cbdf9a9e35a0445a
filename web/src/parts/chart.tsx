// A line over time, by uPlot: how many were in.
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import UPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { app } from '../app';
import { useStore } from '../data/store';
import { sayDay, sayTime, zoneShown } from '../data/times';

interface Line {
    label: string;
    colour: string;
    values: (number | null)[];
}

const HEIGHT_PX = 112;
const FONT = '12px system-ui';

/** 14:05, and 14:05:30 where seconds matter; at midnight the day. */
function sayTick(s: number): string {
    const time = sayTime(s * 1000);
    if (time === '00:00:00') return sayDay(s * 1000).slice(5);
    return time.endsWith(':00') ? time.slice(0, 5) : time;
}

function optionsOf(lines: Line[], width: number, ink: string, grid: string): UPlot.Options {
    const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { show: false }, font: FONT };
    const zone = { label: zoneShown(), labelSize: 16, labelFont: FONT };
    const steps = UPlot.paths.stepped!({ align: 1 });
    return {
        width,
        height: HEIGHT_PX,
        tzDate: (s) => UPlot.tzDate(new Date(s * 1000), zoneShown()),
        legend: { show: false },
        cursor: { show: false },
        scales: { y: { range: (_, least, most) => [Math.min(0, least ?? 0), Math.max(1, most ?? 1) * 1.1] } },
        axes: [
            { ...axis, ...zone, space: 64, size: 22, values: (_, splits) => splits.map(sayTick) },
            { ...axis, size: 36, space: 18, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 10000, 50000] },
        ],
        series: [
            {},
            ...lines.map((one) => ({
                label: one.label,
                stroke: one.colour,
                width: 2,
                paths: steps,
                points: { show: false },
            })),
        ],
    };
}

/** Counts over time (seconds); `about` says in words what the line shows, for whoever does not see it. */
export function Chart({ times, lines, about }: { times: number[]; lines: Line[]; about: string }): JSX.Element {
    const theme = useStore(app, (one) => one.theme);
    const clock = useStore(app, (one) => one.clock);
    const ref = useRef<HTMLDivElement>(null);
    const plot = useRef<UPlot | null>(null);
    const data = [times, ...lines.map((one) => one.values)] as UPlot.AlignedData;
    const shape = JSON.stringify([theme, clock, lines.map((one) => [one.label, one.colour])]);
    useEffect(() => {
        const element = ref.current!;
        const style = getComputedStyle(element);
        const colours = [style.getPropertyValue('--quiet'), style.getPropertyValue('--line')] as const;
        plot.current = new UPlot(optionsOf(lines, Math.max(200, element.clientWidth), ...colours), data, element);
        const seen = new ResizeObserver(() =>
            plot.current?.setSize({ width: Math.max(200, element.clientWidth), height: HEIGHT_PX }),
        );
        seen.observe(element);
        return () => {
            seen.disconnect();
            plot.current?.destroy();
        };
    }, [shape]);
    useEffect(() => plot.current?.setData(data), [times, ...lines.map((one) => one.values)]);
    return <div class="chart" ref={ref} role="img" aria-label={about} />;
}
