"""Files that arrive in a folder, on this disk, in an object store or in HDFS, as records of any of several formats."""
