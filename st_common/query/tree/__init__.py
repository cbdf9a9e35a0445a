"""A query as a tree of operators, above the one flat plan that engines run.

    SELECT kind, COUNT(*) FROM taxis WHERE state = 'free' INSIDE (0, 0, 9, 9) GROUP BY kind

    Told          changes of the answer
      Group       COUNT(*) for each kind                     key: kind        at ticks
        Inside    the box                                    key: object      fix by fix
          Select  state = 'free'                             key: object      fix by fix
            Source  the last fix of each object              key: object      fix by fix

`growing` stacks what was said of a query, `fusing.plan_of` fuses a tree into the plan that the shared kernels take.
What a node cannot stand above it says itself (`refused`), by what its input's rows are and by when they change.
"""
