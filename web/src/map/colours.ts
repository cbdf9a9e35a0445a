// Colours of the map and of queries, for light and dark. Each query has a letter too: nothing is told by colour alone.

export type Theme = 'light' | 'dark';
export type Rgb = [number, number, number];

export const LETTERS = ['A', 'B', 'C', 'D'];

/** Of queries that are chosen, in the order of their letters: told apart also by those who see no red or green. */
export const QUERY_COLOURS: Record<Theme, string[]> = {
    light: ['#0b5fc0', '#b8430a', '#0a7a55', '#8a2fb8'],
    dark: ['#6fb3ff', '#ff9f5a', '#45cf9b', '#d79bff'],
};

export const MAP_COLOURS = {
    light: {
        land: '#f3f1ea',
        water: '#b5d3e6',
        border: '#b3a894',
        green: '#cde2bf',
        building: '#e0d9cc',
        road: '#ffffff',
        roadEdge: '#cfc8ba',
        rail: '#a9a094',
        point: '#8d7f6a',
        other: '#b9a8c9',
        object: '#4a5563',
        objectEdge: '#ffffff',
        drawn: '#b3261e',
        way: '#1f2937',
    },
    dark: {
        land: '#15181c',
        water: '#1b3345',
        border: '#4d555e',
        green: '#1d3023',
        building: '#262b31',
        road: '#3a4149',
        roadEdge: '#20252a',
        rail: '#4b5157',
        point: '#8a8271',
        other: '#5b4f6b',
        object: '#a3adba',
        objectEdge: '#15181c',
        drawn: '#ff8a80',
        way: '#e5e7eb',
    },
} as const;

export function rgbOf(hex: string): Rgb {
    return [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)) as Rgb;
}
