// Starts the page: what is around the map, the map, and what keeps both up to date.
import { render } from 'preact';
import { keepAddress, readAddress } from './address';
import { app, place, setTheme } from './app';
import { drawingIsOn, drawnAt_ms, goWith, startAsking } from './asking';
import { MapView } from './map/view';
import { Page } from './page';
import { asking } from './question';
import { startSession } from './session';
import './style.css';

const SAME_CLICK_MS = 400; // the click that ends a drawing chooses no object
const root = document.getElementById('app')!;

function startMap(): void {
    const container = document.getElementById('map')!;
    try {
        place.view = new MapView(container, app.get().theme, (drawing) => app.set({ drawing }));
    } catch {
        container.textContent = 'The map needs WebGL 2, which this browser does not give. All lists work without it.';
        return;
    }
    startAsking();
    place.view.map.on('click', ({ point }) => takeClick(point.x, point.y));
}

function takeClick(x: number, y: number): void {
    if (drawingIsOn() || performance.now() - drawnAt_ms() < SAME_CLICK_MS) return;
    const found = place.view!.objectAt(x, y);
    const { tool } = asking.get();
    if (tool === 'object' && found !== null && app.get().tab === 'ask') {
        asking.set({ stream: found.stream });
        goWith(found.name);
        return;
    }
    app.set({ object: found, feature: found === null ? place.view!.featureAt(x, y) : null });
}

setTheme(app.get().theme);
root.replaceChildren();
render(<Page />, root);
startMap();
readAddress();
keepAddress();
startSession();
// For tests and measurements: what a person sees, as numbers.
Object.assign(globalThis, { fairwayPage: { app, asking, place } });
