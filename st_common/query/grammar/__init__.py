"""The text of the language as a tree: sqlglot cuts it and reads expressions, this adds our statements and clauses."""
