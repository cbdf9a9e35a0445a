// Finds an object by its name among those that the map knows.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { place } from '../app';

const MOST = 8;

function namesLike(stream: string | null, text: string): Found[] {
    const found: Found[] = [];
    const wanted = text.toLowerCase();
    for (const [of, objects] of place.view?.streams ?? []) {
        if (stream !== null && of !== stream) continue;
        for (const name of objects.names) {
            if (name?.toLowerCase().startsWith(wanted)) found.push({ stream: of, name });
            if (found.length === MOST) return found;
        }
    }
    return found;
}

interface Found {
    stream: string;
    name: string;
}

interface Props {
    stream: string | null; // null: any
    label: string;
    onFound: (name: string, stream: string) => void;
}

function Matches({
    text,
    matches,
    onTake,
}: {
    text: string;
    matches: Found[];
    onTake: (one: Found) => void;
}): JSX.Element {
    return (
        <ul aria-label="Objects found">
            {matches.map((one) => (
                <li key={`${one.stream}/${one.name}`}>
                    <button class="link" onClick={() => onTake(one)}>
                        {one.name}
                    </button>
                </li>
            ))}
            {matches.length === 0 ? <li class="quiet">no object begins with {text}</li> : null}
        </ul>
    );
}

export function FindObject({ stream, label, onFound }: Props): JSX.Element {
    const [text, setText] = useState('');
    const matches = text === '' ? [] : namesLike(stream, text);
    const take = (one: Found): void => {
        setText('');
        onFound(one.name, one.stream);
    };
    const onKey = (event: KeyboardEvent): void => {
        if (event.key === 'Enter' && matches[0] !== undefined) take(matches[0]);
        if (event.key === 'Escape') setText('');
    };
    return (
        <div class="find">
            <input
                type="search"
                value={text}
                placeholder={label}
                aria-label={label}
                onInput={(event) => setText(event.currentTarget.value)}
                onKeyDown={onKey}
            />
            {text === '' ? null : <Matches text={text} matches={matches} onTake={take} />}
        </div>
    );
}
