"""The skeleton of GPAC: queries that move, by four methods a kind, with their cache areas."""
