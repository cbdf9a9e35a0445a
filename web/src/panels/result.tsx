// What a question would have told: figures, counts over time, stays, the difference to what is registered.
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { app } from '../app';
import { setPeriod } from '../asking';
import { useStore } from '../data/store';
import { sayDay, sayDuration, sayInstant, sayNumber, saySpan, withShownTimes } from '../data/times';
import { countsOf, keyOf, type Stay } from '../data/visits';
import { MAP_COLOURS } from '../map/colours';
import { Chart } from '../parts/chart';
import { Notice } from '../parts/small';
import { Timeline } from '../parts/timeline';
import type { Asking, Period, Told } from '../question';
import { showStay } from '../told';

const lengthOf = (stays: Stay[]): number => stays.reduce((sum, one) => sum + one.to_ms - one.from_ms, 0);

function Figures({ told }: { told: Told }): JSX.Element {
    const { stays } = told;
    const who = new Set(stays.map((one) => one.object)).size;
    return (
        <p class="figures" data-testid="told">
            <b>
                {told.hasMore ? 'more than ' : ''}
                {sayNumber(stays.length)}
            </b>{' '}
            {told.isMoment ? (
                <>in at {sayInstant(told.until_ms)}</>
            ) : (
                <>
                    {stays.length === 1 ? 'visit' : 'visits'} of <b>{sayNumber(who)}</b>{' '}
                    {who === 1 ? 'object' : 'objects'}
                </>
            )}
            <Longest stays={stays} />
            <Dwelt told={told} />
        </p>
    );
}

/** How long the longest stay is, and whose: of all that are as long. */
function Longest({ stays }: { stays: Stay[] }): JSX.Element | null {
    const longest = stays[0];
    if (longest === undefined) return null;
    const length = sayDuration(longest.to_ms - longest.from_ms);
    const same = stays.filter((one) => sayDuration(one.to_ms - one.from_ms) === length);
    const others = new Set(same.map((one) => one.object)).size - 1;
    return (
        <>
            {' '}
            · longest <b>{length}</b> by <b>{longest.object}</b>
            {others === 0 ? null : ` and ${sayNumber(others)} ${others === 1 ? 'other' : 'others'}`}
        </>
    );
}

/** Of a fence with dwell: how many stayed that long, for the list has all. */
function Dwelt({ told }: { told: Told }): JSX.Element | null {
    const { dwell_ms, stays } = told;
    if (dwell_ms === null) return null;
    const long = stays.filter((one) => one.to_ms - one.from_ms >= dwell_ms);
    return (
        <>
            {' '}
            · <b>{sayNumber(long.length)}</b> stayed {sayDuration(dwell_ms)} or longer
        </>
    );
}

function VersionRow({ label, told }: { label: string; told: Told }): JSX.Element {
    return (
        <tr>
            <th scope="row">{label}</th>
            <td>{sayNumber(told.stays.length)}</td>
            <td>{sayNumber(new Set(told.stays.map((one) => one.object)).size)}</td>
            <td>{sayDuration(lengthOf(told.stays))}</td>
        </tr>
    );
}

/** What a registered query told beside what this would have told. */
function Compared({ before, told, name }: { before: Told; told: Told; name: string }): JSX.Element {
    const known = new Set(before.stays.map(keyOf));
    const now = new Set(told.stays.map(keyOf));
    const [onlyBefore, onlyNow] = [
        before.stays.filter((one) => !now.has(keyOf(one))).length,
        told.stays.filter((one) => !known.has(keyOf(one))).length,
    ];
    return (
        <table class="compared">
            <caption>
                {onlyBefore + onlyNow === 0
                    ? 'Both begin the same visits'
                    : `${onlyBefore} visits begin only as registered, ${onlyNow} only in this version`}
            </caption>
            <thead>
                <tr>
                    <th scope="col">version</th>
                    <th scope="col">visits</th>
                    <th scope="col">objects</th>
                    <th scope="col">time in all</th>
                </tr>
            </thead>
            <tbody>
                <VersionRow label={`${name}, as registered`} told={before} />
                <VersionRow label="this version" told={told} />
            </tbody>
        </table>
    );
}

function PeriodLink({ period, words }: { period: Period; words: string }): JSX.Element {
    return (
        <button class="link" onClick={() => setPeriod(period)}>
            {words}
        </button>
    );
}

/** Why there is nothing to show: no fix in that time, or nobody in that place. */
function Nobody({ told, stream }: { told: Told; stream: string }): JSX.Element {
    const { from_ms, until_ms, firstFix_ms, lastFix_ms } = told;
    const span = saySpan(from_ms, until_ms);
    if (firstFix_ms === null || lastFix_ms === null) return <Notice>No fix of {stream} is stored yet.</Notice>;
    if (until_ms <= firstFix_ms || from_ms > lastFix_ms)
        return (
            <Notice>
                {stream} has no fix {span}. Its fixes are {saySpan(firstFix_ms, lastFix_ms)}:{' '}
                <PeriodLink period="newest" words={`ask about ${sayDay(lastFix_ms)}`} />.
            </Notice>
        );
    return (
        <Notice>
            Nobody was in {span}. Draw it larger, or look further back: <PeriodLink period="week" words="last 7 days" />
            .
        </Notice>
    );
}

function Shown({ state, told }: { state: Asking; told: Told }): JSX.Element {
    const theme = useStore(app, (one) => one.theme);
    const [times, counts] = useMemo(() => countsOf(told.stays, told.from_ms, told.until_ms), [told]);
    const seconds = useMemo(() => times.map((ms) => ms / 1000), [times]);
    const most = Math.max(0, ...counts.slice(0, 100_000));
    if (told.stays.length === 0) return <Nobody told={told} stream={state.stream} />;
    return (
        <div class="told">
            <Figures told={told} />
            <Chart
                times={seconds}
                lines={[{ label: 'in', colour: MAP_COLOURS[theme].drawn, values: counts }]}
                about={`How many were in over time: at most ${most}`}
            />
            <Timeline
                stays={told.stays}
                from_ms={told.from_ms}
                until_ms={told.until_ms}
                dwell_ms={told.dwell_ms}
                chosen={state.stay}
                onChoose={(stay) => void showStay(stay)}
            />
            {state.base?.told ? <Compared before={state.base.told} told={told} name={state.base.name} /> : null}
        </div>
    );
}

export function Result({ state }: { state: Asking }): JSX.Element | null {
    if (state.state === 'nothing') return null;
    if (state.state === 'error') return <Notice kind="error">{withShownTimes(state.words)}</Notice>;
    const isAsking = state.state === 'asking';
    if (state.told === null) return <Notice kind="loading">Looking at what it would have told …</Notice>;
    return (
        <div class={isAsking ? 'fresh asking' : 'fresh'} aria-busy={isAsking}>
            <Shown state={state} told={state.told} />
            <p class="quiet">It follows from {sayNumber(state.told.fixes)} fixes, from the first of the stream on.</p>
        </div>
    );
}
