"""Static features: reading files, kinds and tags, storing them by region, and what queries ask of them.

A load reads (`reading`, `vector`, OpenStreetMap by osmium), shapes (`rows`) and replaces a table in one commit, then
tells the streams (`announce`). The same on Spark is `spark/layers`; queries that go over to a new version are
`query.layer_following`'s affair. Begin with `load`, then `stored`.
"""
