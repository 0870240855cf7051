"""Things that Spark reads, as sources of loads: what there is after a position, and the position after it."""
