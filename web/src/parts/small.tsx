// Small parts that all panels are made of.
import type { ComponentChildren, JSX, TargetedEvent } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { useStore } from '../data/store';
import { app } from '../app';
import { LETTERS, QUERY_COLOURS } from '../map/colours';

const NARROW = matchMedia('(width < 700px)'); // as the style sheet has it

/** Whether the window is as narrow as a phone, where what lies side by side elsewhere lies one below the other. */
export function useIsNarrow(): boolean {
    const [isNarrow, setNarrow] = useState(NARROW.matches);
    useEffect(() => {
        const follow = (): void => setNarrow(NARROW.matches);
        NARROW.addEventListener('change', follow);
        return () => NARROW.removeEventListener('change', follow);
    }, []);
    return isNarrow;
}

/** The letter of a query in its colour. */
export function Letter({ colour, label }: { colour: number; label?: string }): JSX.Element {
    const theme = useStore(app, (one) => one.theme);
    const style = { backgroundColor: QUERY_COLOURS[theme][colour]! };
    return (
        <span class="letter" style={style} aria-hidden={label === undefined} title={label}>
            {LETTERS[colour]}
        </span>
    );
}

/** What is said where there is nothing to show: what is the matter, and what to do. */
export function Notice({
    kind = 'empty',
    children,
}: {
    kind?: 'empty' | 'loading' | 'error' | 'good';
    children: ComponentChildren;
}): JSX.Element {
    return (
        <p class={`notice ${kind}`} role={kind === 'error' ? 'alert' : undefined}>
            {children}
        </p>
    );
}

export function Field({
    label,
    children,
    unit,
}: {
    label: string;
    children: ComponentChildren;
    unit?: string;
}): JSX.Element {
    return (
        <label class="field">
            <span>{label}</span>
            <span class="input">
                {children}
                {unit === undefined ? null : <span class="unit">{unit}</span>}
            </span>
        </label>
    );
}

interface NumberProps {
    label: string;
    unit?: string;
    value: number;
    least?: number;
    step?: number | 'any';
    onChange: (value: number) => void;
}

export function NumberField({ label, unit, value, least = 0, step = 1, onChange }: NumberProps): JSX.Element {
    const take = (event: TargetedEvent<HTMLInputElement>): void => {
        const number = event.currentTarget.valueAsNumber;
        if (Number.isFinite(number) && number >= least) onChange(number);
    };
    return (
        <Field label={label} {...(unit === undefined ? {} : { unit })}>
            <input type="number" min={least} step={step} value={value} onInput={take} />
        </Field>
    );
}

export function Choice({
    label,
    value,
    options,
    onChange,
}: {
    label: string;
    value: string;
    options: [string, string][];
    onChange: (value: string) => void;
}): JSX.Element {
    return (
        <Field label={label}>
            <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
                {options.map(([key, text]) => (
                    <option key={key} value={key}>
                        {text}
                    </option>
                ))}
            </select>
        </Field>
    );
}

/** Names and values, one a line. */
export function Facts({ facts }: { facts: [string, ComponentChildren][] }): JSX.Element {
    return (
        <dl class="facts">
            {facts.map(([name, value]) => (
                <div key={name}>
                    <dt>{name}</dt>
                    <dd>{value}</dd>
                </div>
            ))}
        </dl>
    );
}
