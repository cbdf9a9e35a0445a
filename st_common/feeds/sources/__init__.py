"""The kinds of sources, each in a module of its own."""
