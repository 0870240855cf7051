"""Iceberg and Delta tables as targets: each run is one commit of the table, which holds the run's offsets too."""
