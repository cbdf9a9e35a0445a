"""From a network, a pipe or a folder into a stream's log, as it happens (SPEC B6).

A source gives bytes (`files`, `pipes`, `sockets`, `web`, `brokers`: what each answers is in `source`), `buffer` and
`writer` make segments of them, `note` says how each is. What the bytes say is `decode`'s affair. Begin with `source`,
then `capture`.
"""
