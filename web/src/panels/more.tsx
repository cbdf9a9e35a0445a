// What can be done with a query: copy it, give it another name, keep its rows as files, be notified, drop it.
import type { ComponentChildren, JSX } from 'preact';
import { useState } from 'preact/hooks';
import { app, say, streamOf } from '../app';
import { startCopy } from '../asking';
import { drop, goToQuery } from '../choosing';
import { pathOf, request, sendText, wordsOf } from '../data/api';
import { changesOfQuery, csvOf, geoJsonOf, keepFile, membersOfQuery, MOST_CHANGES } from '../data/files';
import { selectOf } from '../data/statement';
import { useStore } from '../data/store';
import { sayNumber } from '../data/times';
import type { QueryState } from '../data/types';
import { forgetNotices, notices, wantNotices } from '../notices';
import { Field, Notice } from '../parts/small';
import { askState } from '../session';

type Open = 'nothing' | 'drop' | 'rename' | 'export' | 'notify';

async function dropQuery(name: string): Promise<void> {
    await request(pathOf(['v1', 'queries', name]), { method: 'DELETE' });
    drop(name);
    say(`${name} is dropped.`);
    await askState().catch(() => undefined); // the list has it until the server is asked the next time
}

/** A question that is answered inside the page, and what went wrong when it was carried out. */
function Confirm({
    label,
    yes,
    no,
    onYes,
    onNo,
    children,
}: {
    label: string;
    yes: string;
    no: string;
    onYes: () => Promise<void>;
    onNo: () => void;
    children: ComponentChildren;
}): JSX.Element {
    const [problem, setProblem] = useState('');
    const [isBusy, setBusy] = useState(false);
    const carryOut = async (): Promise<void> => {
        setBusy(true);
        try {
            await onYes();
        } catch (error) {
            setProblem(wordsOf(error));
            setBusy(false);
        }
    };
    return (
        <div class="confirm" role="group" aria-label={label}>
            <p>{children}</p>
            {problem === '' ? null : <Notice kind="error">{problem}</Notice>}
            <p class="actions">
                <button disabled={isBusy} onClick={() => void carryOut()}>
                    {yes}
                </button>
                <button onClick={onNo}>{no}</button>
            </p>
        </div>
    );
}

function Rename({ query, onEnd }: { query: QueryState; onEnd: () => void }): JSX.Element {
    const [name, setName] = useState('');
    const [made, setMade] = useState('');
    const [problem, setProblem] = useState('');
    const wanted = name.trim();
    const register = async (event: Event): Promise<void> => {
        event.preventDefault();
        const quoted = `"${wanted.replaceAll('"', '""')}"`;
        try {
            await sendText('POST', '/v1/queries', `REGISTER QUERY ${quoted} AS ${selectOf(query.text)}`);
            setMade(wanted);
        } catch (error) {
            setProblem(wordsOf(error));
        }
    };
    if (made !== '')
        return (
            <Confirm
                label={`Drop ${query.name}?`}
                yes={`Drop ${query.name}`}
                no="Keep both"
                onYes={async () => {
                    await dropQuery(query.name);
                    await goToQuery(made, `${made} is registered in the place of ${query.name}, which is dropped.`);
                }}
                onNo={() => {
                    onEnd();
                    void goToQuery(made, `${made} is registered beside ${query.name}.`);
                }}
            >
                {made} is registered. Drop {query.name} now? Its changes and visits stay in the tables under the old
                name, and {made} begins its own.
            </Confirm>
        );
    return (
        <form class="confirm" onSubmit={(event) => void register(event)}>
            <p>
                A query keeps its name for ever: the same statement is registered under the new name. History stays with{' '}
                {query.name}, and so do deliveries that name it. You are asked before {query.name} is dropped.
            </p>
            <Field label="New name">
                <input value={name} onInput={(event) => setName(event.currentTarget.value)} />
            </Field>
            {problem === '' ? null : <Notice kind="error">{problem}</Notice>}
            <p class="actions">
                <button disabled={wanted === '' || wanted === query.name}>Register under this name</button>
                <button type="button" onClick={onEnd}>
                    Cancel
                </button>
            </p>
        </form>
    );
}

function Export({ query }: { query: QueryState }): JSX.Element {
    const at_ms = useStore(app, (one) => one.at_ms);
    const [said, setSaid] = useState('');
    const [isWrong, setWrong] = useState(false);
    const isGlobe = streamOf(query.stream)?.space.kind === 'globe';
    const keep = async (what: 'members' | 'changes', kind: 'csv' | 'geojson'): Promise<void> => {
        setSaid('Asking …');
        setWrong(false);
        try {
            const rows =
                what === 'members' ? await membersOfQuery(query.name, at_ms) : await changesOfQuery(query.name);
            const text = kind === 'csv' ? csvOf(rows, what) : geoJsonOf(rows, what);
            const media = kind === 'csv' ? 'text/csv' : 'application/geo+json';
            keepFile(`${query.name}-${what}.${kind}`, text, media);
            setSaid(`${sayNumber(rows.length)} rows are in ${query.name}-${what}.${kind}.`);
        } catch (error) {
            setSaid(wordsOf(error));
            setWrong(true);
        }
    };
    const files = (what: 'members' | 'changes', label: string): JSX.Element => (
        <p class="actions">
            {label}
            <button aria-label={`${label} as CSV`} onClick={() => void keep(what, 'csv')}>
                CSV
            </button>
            {isGlobe ? (
                <button aria-label={`${label} as GeoJSON`} onClick={() => void keep(what, 'geojson')}>
                    GeoJSON
                </button>
            ) : null}
        </p>
    );
    return (
        <div class="confirm" role="group" aria-label={`Export ${query.name}`}>
            {files('members', at_ms === null ? 'Who is in now' : 'Who was in at this moment')}
            {files('changes', `The last ${sayNumber(MOST_CHANGES)} changes that are stored`)}
            {isGlobe ? null : (
                <p class="quiet">The stream lies in a plane, which GeoJSON cannot say: CSV has x and y.</p>
            )}
            {said === '' ? null : isWrong ? <Notice kind="error">{said}</Notice> : <p role="status">{said}</p>}
        </div>
    );
}

function Notify({ query }: { query: QueryState }): JSX.Element {
    const { wanted, refused } = useStore(notices, (one) => one);
    const isOn = wanted.includes(query.name);
    return (
        <div class="confirm" role="group" aria-label={`Notify me of ${query.name}`}>
            <p>
                {isOn
                    ? `The browser notifies you of changes of ${query.name}, at most once in 5 s, while this page and this card are open.`
                    : 'The browser notifies you of changes, at most once in 5 s, while this page and this card are open.'}
            </p>
            {refused === '' ? null : <Notice kind="error">{refused}</Notice>}
            <p class="actions">
                {isOn ? (
                    <button onClick={() => forgetNotices(query.name)}>Stop</button>
                ) : (
                    <button onClick={() => void wantNotices(query.name)}>Notify me</button>
                )}
            </p>
            <p class="quiet">
                With the page closed, a webhook tells: a table of <code>conf/deliveries.toml</code> with{' '}
                <code>
                    stream = "{query.stream}", queries = ["{query.name}"], to = "webhook", url = ".."
                </code>
                , then <code>fairway deliver</code>. docs/delivery.md has all of it.
            </p>
        </div>
    );
}

const ITEMS: [Open, string][] = [
    ['rename', 'Rename'],
    ['export', 'Export'],
    ['notify', 'Notify me …'],
    ['drop', 'Drop'],
];

/** A small menu; what is chosen in it opens below. */
export function More({ query }: { query: QueryState }): JSX.Element {
    const [open, setOpen] = useState<Open>('nothing');
    const isNotified = useStore(notices, (one) => one.wanted.includes(query.name));
    const close = (): void => setOpen('nothing');
    return (
        <details class="more">
            <summary>More{isNotified ? ' · notifying' : ''}</summary>
            <p class="actions">
                <button onClick={() => startCopy(query.name, query.stream, selectOf(query.text))}>Duplicate</button>
                {ITEMS.map(([what, label]) => (
                    <button
                        key={what}
                        aria-expanded={open === what}
                        onClick={() => setOpen(open === what ? 'nothing' : what)}
                    >
                        {label}
                    </button>
                ))}
            </p>
            {open === 'drop' ? (
                <Confirm
                    label={`Drop ${query.name}?`}
                    yes={`Drop ${query.name}`}
                    no="Keep it"
                    onYes={() => dropQuery(query.name)}
                    onNo={close}
                >
                    Drop {query.name}? Its answer ends and nobody is told of changes any more. What it told so far stays
                    in the tables.
                </Confirm>
            ) : null}
            {open === 'rename' ? <Rename query={query} onEnd={close} /> : null}
            {open === 'export' ? <Export query={query} /> : null}
            {open === 'notify' ? <Notify query={query} /> : null}
        </details>
    );
}
