"""The text of the language as a tree: the grammar (`fairway.lark`), the parser that is made of it, and the nodes.

What may come next in a text (`expecting`) and what is said of a wrong token (`refusing`) come from the parser's table.
What a tree means is not known here: see `lowering`. Begin with `statements`, then `nodes`.
"""
