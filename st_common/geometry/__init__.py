"""Array kernels: boxes, predicates, distance."""
