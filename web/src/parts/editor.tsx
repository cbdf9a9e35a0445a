// A statement that can be edited: completed as one types, errors shown at their place.
import type { JSX, TargetedEvent, TargetedKeyboardEvent } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { sendJson } from '../data/api';

interface Option {
    text: string;
    about: string;
}

interface Completion {
    from: number;
    options: Option[];
}

interface Props {
    text: string;
    problem: string;
    where: { line: number; column: number } | null;
    onEdit: (text: string) => void;
}

const MOST_OPTIONS = 8;
const LINE_LETTERS = 42;

/** As many lines as the text takes, wrapped. */
function rowsOf(text: string): number {
    const lines = text.split('\n').map((line) => Math.max(1, Math.ceil(line.length / LINE_LETTERS)));
    return Math.min(
        10,
        Math.max(
            3,
            lines.reduce((sum, one) => sum + one, 0),
        ),
    );
}

function useCompletion(onEdit: (text: string) => void) {
    const [found, setFound] = useState<Completion>({ from: 0, options: [] });
    const [at, setAt] = useState(0);
    const close = (): void => setFound({ from: 0, options: [] });
    const ask = async (element: HTMLTextAreaElement): Promise<void> => {
        const { value: text, selectionStart: cursor } = element;
        try {
            const done = await sendJson<Completion>('POST', '/page/complete', { text, cursor });
            if (element.value !== text || element.selectionStart !== cursor) return; // a later one is on its way
            setFound({ ...done, options: done.options.slice(0, MOST_OPTIONS) });
            setAt(0);
        } catch {
            close(); // a statement can be written without it, too
        }
    };
    const take = (element: HTMLTextAreaElement, option: Option): void => {
        const end = element.selectionStart;
        const text = element.value.slice(0, found.from) + option.text + element.value.slice(end);
        onEdit(text);
        close();
        requestAnimationFrame(() => {
            element.focus();
            element.selectionStart = element.selectionEnd = found.from + option.text.length;
        });
    };
    return { found, at, setAt, close, ask, take };
}

/** What keys do while words are offered; true: the key is used up. */
function takeKey(key: string, element: HTMLTextAreaElement, completion: ReturnType<typeof useCompletion>): boolean {
    const { found, at, setAt, close, take } = completion;
    const count = found.options.length;
    if (count === 0) return false;
    if (key === 'ArrowDown' || key === 'ArrowUp') setAt((at + (key === 'ArrowDown' ? 1 : count - 1)) % count);
    else if (key === 'Enter') take(element, found.options[at]!);
    else if (key === 'Escape') close();
    else return false;
    return true;
}

function Mark({ text, where }: { text: string; where: { line: number; column: number } }): JSX.Element {
    const line = text.split('\n')[where.line - 1] ?? '';
    const from = Math.max(0, where.column - 1);
    const word = /^\S+/.exec(line.slice(from))?.[0] ?? ' ';
    return (
        <pre class="mark" aria-hidden="true">
            {line.slice(Math.max(0, from - 24), from)}
            <b>{word}</b>
            {line.slice(from + word.length, from + word.length + 24)}
        </pre>
    );
}

/** The words that may follow, to be chosen from. */
function Words({
    completion,
    onTake,
}: {
    completion: ReturnType<typeof useCompletion>;
    onTake: (option: Option) => void;
}): JSX.Element | null {
    const { found, at } = completion;
    if (found.options.length === 0) return null;
    return (
        <ul id="words" role="listbox" aria-label="Words that may follow">
            {found.options.map((one, i) => (
                <li
                    key={one.text}
                    id={`word-${i}`}
                    role="option"
                    aria-selected={i === at}
                    onMouseDown={() => onTake(one)}
                >
                    <b>{one.text}</b> <span>{one.about}</span>
                </li>
            ))}
        </ul>
    );
}

function Problem({ text, problem, where }: Omit<Props, 'onEdit'>): JSX.Element {
    return (
        <div id="problem" role="alert">
            {problem === '' ? null : <p class="notice error">{problem}</p>}
            {problem === '' || where === null ? null : <Mark text={text} where={where} />}
        </div>
    );
}

function onKey(event: TargetedKeyboardEvent<HTMLTextAreaElement>, completion: ReturnType<typeof useCompletion>): void {
    const element = event.currentTarget;
    if (event.key === ' ' && event.ctrlKey) void completion.ask(element);
    else if (!takeKey(event.key, element, completion)) return;
    event.preventDefault();
}

/** Closes the words once the click or key that took the focus away is over: what is below them moves up then. */
function closeAfterwards(close: () => void): void {
    const over = new AbortController();
    const end = (): void => {
        over.abort();
        setTimeout(close);
    };
    for (const name of ['pointerup', 'keyup']) addEventListener(name, end, { signal: over.signal });
}

export function Editor({ onEdit, ...told }: Props): JSX.Element {
    const ref = useRef<HTMLTextAreaElement>(null);
    const completion = useCompletion(onEdit);
    const chosen = completion.found.options[completion.at];
    const onInput = (event: TargetedEvent<HTMLTextAreaElement>): void => {
        onEdit(event.currentTarget.value);
        void completion.ask(event.currentTarget);
    };
    return (
        <div class="editor">
            <textarea
                ref={ref}
                rows={rowsOf(told.text)}
                spellcheck={false}
                value={told.text}
                aria-label="The statement"
                aria-invalid={told.problem !== ''}
                aria-describedby="problem"
                aria-autocomplete="list"
                {...(chosen === undefined
                    ? {}
                    : { 'aria-controls': 'words', 'aria-activedescendant': `word-${completion.at}` })}
                placeholder="Draw on the map, or write: SELECT * FROM …"
                onInput={onInput}
                onKeyDown={(event) => onKey(event, completion)}
                onBlur={() => closeAfterwards(completion.close)}
            />
            <Words completion={completion} onTake={(one) => completion.take(ref.current!, one)} />
            <Problem {...told} />
        </div>
    );
}
