"""The originals' results for schemas, stored as data (``*.jsonl.gz``), and the programs that generated them."""
