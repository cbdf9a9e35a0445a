"""What a shard remembers between batches, and how it is stored, changed and compared; it names no operator.

    state + delta = the state after a run        `delta.apply`; what a batch writes, small where little moved
    state - state = delta                        `difference.Changed`; what an engine writes that keeps states

Strings have numbers (`intern`): of objects, of partners (features, group names, other objects). What an object can be
in the answer of is a target (`targets`): a query, or a query together with a partner. An answer is a sorted set of
pairs of an object and a target. What operators remember beside answers are components: tables that say whose numbers
their columns hold, so that a state can be stored, cut into shards and joined without knowing what they are about.
"""
