"""Several registries over one schema log: one is elected to write; the others forward writes to it and answer reads."""
