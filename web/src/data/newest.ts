// One thing at a time: what is asked for meanwhile waits, and only the newest of it is carried out.

/** Carries out what is asked for, never two at once, so that a slow server is not asked more than it answers. */
export class Newest {
    private next: (() => Promise<void>) | null = null;
    private isBusy = false;

    /** Carries something out as soon as what is under way has ended, unless something newer is asked for first. */
    ask(what: () => Promise<void>): void {
        this.next = what;
        if (!this.isBusy) void this.run();
    }

    private async run(): Promise<void> {
        this.isBusy = true;
        while (this.next !== null) {
            const what = this.next;
            this.next = null;
            await what();
        }
        this.isBusy = false;
    }
}
