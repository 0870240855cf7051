"""The partitioned log on disk, in Apache Kafka's directory format: segments, indexes, recovery, retention, compaction."""
