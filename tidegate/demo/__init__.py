"""The main job on real input: the flights of 2013 from New York, from a database to Parquet.

The demo runs SQL, posts the connector JSONs beside this file, publishes events with simple-salesforce and reads results;
everything in between is the platform.
"""
