// Who is in an answer, and what a change makes of it.
import type { Change, Member } from './types';

export type Members = Map<string, Member>;

const keyOf = (one: { object: string; partner: string | null }): string => JSON.stringify([one.object, one.partner]);

export const membersOf = (rows: Member[]): Members => new Map(rows.map((one) => [keyOf(one), one]));

export function applyTo(known: Members, one: Change): void {
    if (one.sign > 0) known.set(keyOf(one), one);
    if (one.sign < 0) known.delete(keyOf(one));
}
