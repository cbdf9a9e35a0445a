"""What one run of log rows brings, as every operator sees it, and in what form operators answer.

Turn       the events of the run, their readings, the clock, the compiled queries, numbers of partners and targets
Present    the last fix of every object, taken on from tick to tick
Course     the same over many ticks at once: versions of fixes, each with the ticks at which it is the last one
Spells     what queries hold, as spells of ticks; Turns are their ends
Swapping   the same as a turn where queries start, stop or see another version of a layer
Part       what an operator gives back: rows of changes, counts, what becomes of its components
"""
