// The processes that work for a stream: what each says of itself.
import type { JSX } from 'preact';
import type { WorkerState } from '../data/types';

const GB = 1e9;

const sayBytes = (bytes: number): string =>
    bytes < GB ? `${Math.round(bytes / 1e6)} MB` : `${(bytes / GB).toFixed(1)} GB`;

/** What a worker takes, in words: what it does not know it does not say. */
function sayTaken(worker: WorkerState): string {
    const { cpu_share: share, disk_free_bytes: free, disk_bytes: all, shards } = worker;
    const parts = [
        share === null ? null : `CPU ${Math.round(share * 100)} % of a core`,
        `memory ${sayBytes(worker.memory_bytes)}`,
        free === null || all === null ? null : `disk ${sayBytes(free)} free of ${sayBytes(all)}`,
        shards === null ? null : `shards ${shards.join(', ') || 'none'}`,
    ];
    return parts.filter((one) => one !== null).join(' · ');
}

function Worker({ worker }: { worker: WorkerState }): JSX.Element {
    return (
        <li>
            {worker.role} {worker.pid} on {worker.host}
            {worker.version === null ? '' : `, version ${worker.version}`}
            <div class="quiet">{sayTaken(worker)}</div>
        </li>
    );
}

export function Workers({ stream, workers }: { stream: string; workers: WorkerState[] }): JSX.Element | null {
    if (workers.length === 0) return null;
    return (
        <ul class="workers" aria-label={`Workers of ${stream}`}>
            {workers.map((one) => (
                <Worker key={`${one.host}/${one.pid}`} worker={one} />
            ))}
        </ul>
    );
}
