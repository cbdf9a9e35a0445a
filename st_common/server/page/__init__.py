"""What the page asks the server: its files, where objects are now and were, tiles, shapes, the state of all."""
