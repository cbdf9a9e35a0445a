// A feature of a layer that was clicked: what is known of it, and how to ask about it.
import type { JSX } from 'preact';
import { app } from '../app';
import { askAbout } from '../asking';
import { useStore } from '../data/store';
import { Facts } from '../parts/small';

export function FeaturePanel(): JSX.Element | null {
    const feature = useStore(app, (one) => one.feature);
    if (feature === null) return null;
    const { layer, geometry, properties } = feature;
    const fid = String(properties['fid'] ?? '');
    const facts = Object.entries(properties).map(([name, value]): [string, string] => [name, String(value)]);
    const isArea = geometry === 'Polygon' || geometry === 'MultiPolygon';
    return (
        <section class="object" aria-label={`Feature ${fid}`}>
            <header>
                <h2>{String(properties['name'] ?? properties['kind'] ?? fid)}</h2>
                <button class="plain" aria-label="Close" onClick={() => app.set({ feature: null })}>
                    ✕
                </button>
            </header>
            <Facts facts={[['layer', layer], ...facts]} />
            {isArea && fid !== '' ? (
                <p class="actions">
                    <button onClick={() => askAbout(layer, fid)}>Ask who is in it</button>
                </p>
            ) : null}
        </section>
    );
}
