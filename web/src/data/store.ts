// A value that parts of the page look at: whoever looks is drawn anew when what he looks at has changed.
import { useEffect, useReducer, useRef } from 'preact/hooks';

export class Store<T extends object> {
    private readonly listeners = new Set<() => void>();

    constructor(private value: T) {}

    get(): T {
        return this.value;
    }

    set(part: Partial<T>): void {
        this.value = { ...this.value, ...part };
        for (const listener of [...this.listeners]) listener();
    }

    subscribe(listener: () => void): () => void {
        this.listeners.add(listener);
        return () => this.listeners.delete(listener);
    }
}

/** A part of a store, in a component; `pick` gives the same value as long as nothing has changed. */
export function useStore<T extends object, V>(store: Store<T>, pick: (value: T) => V): V {
    const [, drawAnew] = useReducer<number, undefined>((count) => count + 1, 0);
    const value = pick(store.get());
    const last = useRef({ value, pick });
    last.current = { value, pick };
    useEffect(() => {
        const look = (): void => {
            if (last.current.pick(store.get()) !== last.current.value) drawAnew(undefined);
        };
        look(); // it may have changed between drawing and now
        return store.subscribe(look);
    }, [store]);
    return value;
}
