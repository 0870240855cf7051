"""Records as files in HDFS, through a client that needs no Java."""
