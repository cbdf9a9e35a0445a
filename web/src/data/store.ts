// A value that parts of the page look at: whoever looks is drawn anew when what he looks at has changed.
import { useEffect, useState } from 'preact/hooks';

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
  const [value, setValue] = useState(() => pick(store.get()));
  useEffect(() => {
    const look = (): void => setValue(() => pick(store.get()));
    look();
    return store.subscribe(look);
  }, []);
  return value;
}
