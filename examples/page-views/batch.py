"""The batch layer: ``batch.py lake/views`` calculates the views of all hours anew, from all files of the lake.

The path may be of HDFS (hdfs://host:8020/lake/views) or S3 (s3a://...); the result is in batch/ in this folder.
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from views import by_hour

spark = SparkSession.builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
lake = spark.read.parquet(sys.argv[1])
by_hour({"views": lake}).coalesce(1).write.mode("overwrite").parquet(Path("batch").absolute().as_uri())
print(f"{lake.count():,} views in the lake")
