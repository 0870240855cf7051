"""The main use case on real data: the flights of 2013 from New York, from a database to Parquet.

The demo runs SQL, posts the connector JSONs next to this file, publishes events with simple-salesforce and reads
results; the platform does everything in between.
"""
