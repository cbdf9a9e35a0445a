// A question that is drawn: tools, kind, statement, what it would have told, and registering it.
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { app } from '../app';
import {
    clear,
    edit,
    goWith,
    putInMiddle,
    putShape,
    register,
    setPeriod,
    setSize,
    setStream,
    setWish,
    take,
    undoEdit,
} from '../asking';
import { useStore } from '../data/store';
import { dayBefore, sayInstant, sayNamedDay, sayNumber } from '../data/times';
import type { Kind, Shape, Wish } from '../data/statement';
import { Editor } from '../parts/editor';
import { Choice, Field, Notice, NumberField } from '../parts/small';
import { asking, type Asking, type Period } from '../question';
import { answeredUntil_ms } from '../told';
import { Result } from './result';
import { FindObject } from './find';

const TOOLS = [
    ['rectangle', 'Rectangle', 'M4 6h16v12H4z'],
    ['circle', 'Circle', 'M12 4a8 8 0 1 0 0 16a8 8 0 1 0 0-16z'],
    ['polygon', 'Polygon', 'M5 9l7-5 8 6-4 10H7z'],
    ['corridor', 'Corridor', 'M4 18l6-9 5 5 5-9'],
    ['point', 'Point', 'M12 8a4 4 0 1 0 0 8a4 4 0 1 0 0-8z'],
    ['object', 'Go with an object', 'M12 3v4M12 17v4M3 12h4M17 12h4M12 9a3 3 0 1 0 0 6a3 3 0 1 0 0-6z'],
] as const;

const KINDS: [Kind, string][] = [
    ['fence', 'Geofence: who comes, stays and goes'],
    ['range', 'Who is inside'],
    ['knn', 'Nearest objects'],
    ['join', 'Join with a map layer: who is at its features'],
    ['window', 'In the last minutes: who was inside'],
    ['aggregate', 'Count: how many are inside'],
];

/** What can be chosen: times up to the newest fix of the stream, and days by their dates. */
function periodsOf(until_ms: number, now_ms: number): [Period, string][] {
    return [
        ['now', 'now, once'],
        ['hour', 'in the last hour'],
        ['six', 'in the last 6 hours'],
        ['day', 'in the last 24 hours'],
        ['newest', sayNamedDay(until_ms, now_ms)],
        ['before', sayNamedDay(dayBefore(until_ms), now_ms)],
        ['week', 'in the last 7 days'],
    ];
}

function Tools({ state }: { state: Asking }): JSX.Element {
    return (
        <div class="tools" role="group" aria-label="Draw">
            {TOOLS.map(([tool, label, path]) => (
                <button key={tool} aria-pressed={state.tool === tool} onClick={() => take(tool)}>
                    <svg viewBox="0 0 24 24" aria-hidden="true">
                        <path d={path} />
                    </svg>
                    {label}
                </button>
            ))}
        </div>
    );
}

const PRESS = matchMedia('(pointer: coarse)').matches ? 'Tap' : 'Click';
const HOW: Record<string, string> = {
    rectangle: `${PRESS} a corner on the map, then the opposite one, or drag from one to the other.`,
    circle: `${PRESS} the centre on the map, then how far it reaches, or drag.`,
    polygon: `${PRESS} corner by corner, and the first one again to close it.`,
    corridor: `${PRESS} along the line, and its end again when it is done.`,
    point: `${PRESS} a place on the map.`,
    object: `${PRESS} an object on the map, or find it by its name:`,
};

function Hint({ state }: { state: Asking }): JSX.Element | null {
    if (state.tool === null || state.shape !== null) return null;
    return (
        <div class="hint">
            <p>{HOW[state.tool]}</p>
            {state.tool === 'object' ? (
                <FindObject stream={state.stream} label="Object to go with" onFound={goWith} />
            ) : (
                <button onClick={putInMiddle}>Put it in the middle of the map</button>
            )}
        </div>
    );
}

function Corners({ shape }: { shape: Extract<Shape, { type: 'rectangle' }> }): JSX.Element {
    const names = ['West', 'South', 'East', 'North'];
    const set = (k: number, value: number): void =>
        putShape({ ...shape, box: shape.box.with(k, value) as typeof shape.box });
    return (
        <div class="pair">
            {names.map((name, k) => (
                <NumberField
                    key={name}
                    label={name}
                    step="any"
                    least={-180}
                    value={Number(shape.box[k]!.toFixed(6))}
                    onChange={(value) => set(k, value)}
                />
            ))}
        </div>
    );
}

function Size({ shape }: { shape: Shape | null }): JSX.Element | null {
    if (shape === null || shape.type === 'polygon' || shape.type === 'point' || shape.type === 'feature') return null;
    if (shape.type === 'rectangle')
        return (
            <details>
                <summary>Corners</summary>
                <Corners shape={shape} />
            </details>
        );
    const [label, metres] =
        shape.type === 'corridor' ? ['On either side of the line', shape.width_m] : ['Radius', shape.radius_m];
    return (
        <NumberField
            label={label as string}
            unit="m"
            least={1}
            value={Math.round(metres as number)}
            onChange={setSize}
        />
    );
}

function GroupChoice({ state }: { state: Asking }): JSX.Element {
    const attributes = useStore(app, (one) => one.page?.streams.find((each) => each.name === state.stream)?.attributes);
    const options: [string, string][] = [
        ['', 'all objects together'],
        ...Object.keys(attributes ?? {}).map((one): [string, string] => [one, `each ${one}`]),
    ];
    return (
        <Choice
            label="Count for"
            value={state.wish.group_by}
            options={options}
            onChange={(group_by) => setWish({ group_by })}
        />
    );
}

function FenceFields({ wish }: { wish: Wish }): JSX.Element {
    return (
        <div class="pair">
            <NumberField
                label="Dwell (0: none)"
                unit="min"
                value={wish.dwell_min}
                onChange={(dwell_min) => setWish({ dwell_min })}
            />
            <NumberField
                label="Hysteresis"
                unit="m"
                value={wish.hysteresis_m}
                onChange={(hysteresis_m) => setWish({ hysteresis_m })}
            />
        </div>
    );
}

function WindowField({ wish }: { wish: Wish }): JSX.Element {
    return (
        <NumberField
            label="Within the last"
            unit="min"
            least={1}
            value={wish.window_min}
            onChange={(window_min) => setWish({ window_min })}
        />
    );
}

function JoinFields({ wish }: { wish: Wish }): JSX.Element {
    const layers = useStore(app, (one) => one.page?.layers) ?? [];
    if (layers.length === 0)
        return (
            <Notice>
                There is no layer yet: <code>fairway layer load NAME FILE</code> brings one.
            </Notice>
        );
    const kinds = layers.find((one) => one.name === wish.layer)?.kinds ?? {};
    return (
        <div class="pair">
            <Choice
                label="Layer"
                value={wish.layer}
                options={[['', 'choose'], ...layers.map((one): [string, string] => [one.name, one.name])]}
                onChange={(layer) => setWish({ layer, feature_kind: '' })}
            />
            <Choice
                label="Kind of features"
                value={wish.feature_kind}
                options={[['', 'any'], ...Object.keys(kinds).map((one): [string, string] => [one, one])]}
                onChange={(feature_kind) => setWish({ feature_kind })}
            />
            <NumberField
                label="Within (0: in them)"
                unit="m"
                value={wish.distance_m}
                onChange={(distance_m) => setWish({ distance_m })}
            />
        </div>
    );
}

/** What else a kind of question needs. */
function KindFields({ state }: { state: Asking }): JSX.Element | null {
    const { wish } = state;
    switch (wish.kind) {
        case 'fence':
            return <FenceFields wish={wish} />;
        case 'knn':
            return <NumberField label="How many" least={1} value={wish.k} onChange={(k) => setWish({ k })} />;
        case 'window':
            return <WindowField wish={wish} />;
        case 'aggregate':
            return <GroupChoice state={state} />;
        case 'join':
            return <JoinFields wish={wish} />;
        case 'range':
            return null;
    }
}

function NameField({ name }: { name: string }): JSX.Element {
    return (
        <Field label="Name">
            <input
                value={name}
                placeholder="depot"
                onInput={(event) => asking.set({ name: event.currentTarget.value })}
            />
        </Field>
    );
}

function Registering({ state }: { state: Asking }): JSX.Element {
    const name = state.name.trim();
    const exists = useStore(app, (one) => one.page?.queries.some((each) => each.name === name) ?? false);
    const isReady = name !== '' && state.text.trim() !== '' && state.problem === '';
    const onSubmit = (event: Event): void => {
        event.preventDefault();
        if (isReady) void register();
    };
    return (
        <form class="register" onSubmit={onSubmit}>
            <NameField name={state.name} />
            <button class="main" disabled={!isReady}>
                {exists ? 'Replace' : 'Register'}
            </button>
            {exists ? <p class="quiet">{name} is there already: this becomes its next version.</p> : null}
        </form>
    );
}

function StreamChoice({ state }: { state: Asking }): JSX.Element | null {
    const streams = useStore(app, (one) => one.page?.streams) ?? [];
    useEffect(() => {
        if (state.stream === '' && streams.length > 0)
            asking.set({ stream: [...streams].sort((a, b) => (b.objects ?? 0) - (a.objects ?? 0))[0]!.name });
    }, [streams.length]);
    if (streams.length < 2) return null;
    return (
        <Choice
            label="Objects of"
            value={state.stream}
            options={streams.map((one) => [one.name, `${one.name} (${sayNumber(one.objects)} objects)`])}
            onChange={setStream}
        />
    );
}

/** What is drawn, and what is asked about it. */
function Wishes({ state }: { state: Asking }): JSX.Element {
    return (
        <>
            <Tools state={state} />
            <Hint state={state} />
            <Choice
                label="What to ask"
                value={state.wish.kind}
                options={KINDS}
                onChange={(kind) => setWish({ kind: kind as Kind })}
            />
            <KindFields state={state} />
            <Size shape={state.shape} />
        </>
    );
}

function OfAnother({ name }: { name: string }): JSX.Element {
    return (
        <p class="quiet">
            Another version of <b>{name}</b>. Edit it: below stands what each of the two would have told.
        </p>
    );
}

function Undo({ state }: { state: Asking }): JSX.Element {
    return (
        <p class="actions">
            {state.isEdited && state.shape !== null ? <button onClick={undoEdit}>Back to what is drawn</button> : null}
            {state.text === '' && state.tool === null ? null : <button onClick={clear}>Begin anew</button>}
        </p>
    );
}

function PeriodChoice({ state, now_ms }: { state: Asking; now_ms: number }): JSX.Element {
    const until_ms = answeredUntil_ms(state.stream);
    return (
        <>
            <Choice
                label="What it would have told"
                value={state.period}
                options={periodsOf(until_ms, now_ms)}
                onChange={(period) => setPeriod(period as Period)}
            />
            <p class="quiet">
                Now is the newest fix of {state.stream}, {sayInstant(until_ms)}, and moves on with it. {state.ghosts}
            </p>
        </>
    );
}

function NoStream(): JSX.Element {
    return (
        <Notice>
            There is no stream yet: <code>fairway check FILE --write NAME</code> adds one, and{' '}
            <code>fairway serve</code> has it when it is started again.
        </Notice>
    );
}

export function Ask(): JSX.Element {
    const state = useStore(asking, (one) => one);
    const page = useStore(app, (one) => one.page);
    if (page === null) return <Notice kind="loading">Asking the server for its streams …</Notice>;
    if (page.streams.length === 0) return <NoStream />;
    return (
        <div class="ask">
            <StreamChoice state={state} />
            {state.base === null ? <Wishes state={state} /> : <OfAnother name={state.base.name} />}
            <Editor text={state.text} problem={state.problem} where={state.where} onEdit={edit} />
            <Undo state={state} />
            <Registering state={state} />
            <PeriodChoice state={state} now_ms={Date.parse(page.now)} />
            <Result state={state} />
        </div>
    );
}
