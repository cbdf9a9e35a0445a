"""From the tree of a SELECT to a plan: a module for each clause. What a plan cannot say is refused where it stands.

Texts are not read here (see `grammar`), and no home is asked: what a stream has is checked by `query.checks` and
`query.binding`. Begin with `lower`, then `select` and `space`.
"""
