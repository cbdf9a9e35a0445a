// Server-sent events, as text.

export interface SentEvent {
    id: string | null;
    event: string;
    data: string;
}

/** The events of a text of them that is whole, and the rest that is not yet. */
export function splitEvents(text: string): {
    events: SentEvent[];
    rest: string;
} {
    const parts = text.replaceAll('\r\n', '\n').split('\n\n');
    const rest = parts.pop() ?? '';
    const events = parts.map((part) => {
        const told = { id: null as string | null, event: 'message', data: '' };
        for (const line of part.split('\n')) {
            if (line.startsWith('id:')) told.id = line.slice(3).trim();
            else if (line.startsWith('event:')) told.event = line.slice(6).trim();
            else if (line.startsWith('data:')) told.data += line.slice(5).trimStart();
        }
        return told;
    });
    return { events: events.filter((one) => one.data !== ''), rest };
}
