"""What the page asks the server: its files, where objects are now and were, tiles, shapes, the state of all.

Its addresses are promised to nobody but the page in `web/`; what others may ask is in `server`. Begin with `endpoints`,
then `state` and `live`.
"""
