// Finds an object by its name among those that the map knows.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { place } from '../app';

const MOST = 8;

function namesLike(stream: string | null, text: string): { stream: string; name: string }[] {
    const found: { stream: string; name: string }[] = [];
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

interface Props {
    stream: string | null; // null: any
    label: string;
    onFound: (name: string, stream: string) => void;
}

export function FindObject({ stream, label, onFound }: Props): JSX.Element {
    const [text, setText] = useState('');
    const found = text === '' ? [] : namesLike(stream, text);
    const take = (one: { stream: string; name: string }): void => {
        setText('');
        onFound(one.name, one.stream);
    };
    const onKey = (event: KeyboardEvent): void => {
        if (event.key === 'Enter' && found[0] !== undefined) take(found[0]);
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
            {text === '' ? null : (
                <ul aria-label="Objects found">
                    {found.map((one) => (
                        <li key={`${one.stream}/${one.name}`}>
                            <button class="link" onClick={() => take(one)}>
                                {one.name}
                            </button>
                        </li>
                    ))}
                    {found.length === 0 ? <li class="quiet">no object begins with {text}</li> : null}
                </ul>
            )}
        </div>
    );
}
