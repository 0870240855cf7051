# %% [markdown]
# # Delays of flights
#
# A notebook in cells: VS Code, PyCharm and Spyder run it as it is, JupyterLab with Jupytext. `python flights.py` runs it whole.

# %%
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
platform = {"kafka.bootstrap.servers": "127.0.0.1:9092", "schema.registry.url": "http://127.0.0.1:8081"}

# %% [markdown]
# The columns are those of the topic's newest schema.

# %%
flights = spark.read.format("tidegate").options(**platform, subscribe="flights").load().select("value.*")
flights.printSchema()

# %%
delays = flights.groupBy("carrier").agg(
    f.count("*").alias("flights"), f.count_if(f.col("delay").isNull()).alias("cancelled"), f.avg("delay").alias("delay")
)
delays.orderBy("carrier").show()

# %% [markdown]
# The answer becomes a topic: its schema is derived from the columns and registered, and the carrier is the key.

# %%
delays.write.format("tidegate").options(**platform, topic="delays", **{"key.fields": "carrier"}).mode("append").save()

# %% [markdown]
# pandas, and what is made of it, is one call away.

# %%
print(flights.where("delay > 5").toPandas().to_string(index=False))
