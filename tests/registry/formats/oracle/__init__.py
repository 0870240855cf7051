"""What the originals say of schemas, kept as data (``*.jsonl.gz``), and the programs that asked them."""
