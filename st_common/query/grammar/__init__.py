"""The text of the language as a tree: the grammar, the parser that is made of it, what it expects, and the nodes."""
