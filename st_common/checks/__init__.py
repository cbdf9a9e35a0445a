"""Whether what streams say holds, and why it was said: `verify`, `audit`, `why`.

Here a history is walked (fixes, clock rows, versions of layers, registrations, in the order of the log) and `reference`
is asked what each query answers at each of its moments: `history` is what happened, `answers`, `nested` and `visits`
are what follows from it; `archived` is what a home brings to it. `verify` and `why` bring the tables of a home, the
tests' oracle the rows of a law. What an operator means does not live here but in `reference`, and no engine's code may:
`audit` alone replays a log by the step, to compare what is stored. Begin with `history`, then `verify`.
"""
