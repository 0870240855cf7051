"""Several registries over one schema log: one is elected to write, the others pass writes on to it and answer reads."""
