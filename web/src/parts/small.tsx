// Small parts that all panels are made of.
import type { ComponentChildren, JSX, TargetedEvent } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { useStore } from '../data/store';
import { app } from '../app';
import { LETTERS, QUERY_COLOURS } from '../map/colours';

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

/** A canvas of a fixed height that draws itself anew when its data or its width change. */
export function useWidth(
    onWidth: (width: number, element: HTMLDivElement) => void,
    deps: unknown[],
): { current: HTMLDivElement | null } {
    const ref = useRef<HTMLDivElement>(null);
    useEffect(() => {
        const element = ref.current!;
        const seen = new ResizeObserver(() => onWidth(element.clientWidth, element));
        seen.observe(element);
        return () => seen.disconnect();
    }, deps);
    return ref;
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
