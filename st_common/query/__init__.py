"""The query language: from a text, JSON or a builder to a plan, and the registry of queries of a home.

    text -> grammar (its tree) -> lowering (clause by clause) -> tree -> plan -> registry -> control rows of logs

What a plan means is `operators`' affair, and what it means without an engine `reference`'s; nothing is evaluated here.
Begin with `text`, then `lowering/lower`, `plan` and `registry`.
"""
