"""The connectors that come with Tidegate, all in one list; nothing of one is imported until it is used."""

from __future__ import annotations

from functools import partial
from typing import Final

from connect.api import Plugin, PluginType, hookimpl

__all__ = ["CONNECTORS", "TRANSFORMS", "register_plugins"]

VERSION: Final = "0.1.0"

_source = partial(Plugin, PluginType.SOURCE, version=VERSION)
_sink = partial(Plugin, PluginType.SINK, version=VERSION)

CONNECTORS: Final = (
    _sink(
        "connectors.azure.sink:AzureBlobStorageSinkConnector",
        ("io.confluent.connect.azure.blob.AzureBlobStorageSinkConnector",),
        needs=("obstore",),
        extra="objects",
    ),
    _source(
        "connectors.azure.source:AzureBlobStorageSourceConnector",
        ("io.confluent.connect.azure.blob.storage.AzureBlobStorageSourceConnector",),
        needs=("obstore",),
        extra="objects",
        short_names=("AzureBlobSource",),
    ),
    _source(
        "connectors.datagen.source:DatagenConnector",
        ("io.confluent.kafka.connect.datagen.DatagenConnector",),
        short_names=("DatagenSource",),
    ),
    _sink(
        "connectors.delta.sink:DeltaSinkConnector",
        ("tidegate.delta.DeltaSinkConnector",),
        needs=("deltalake",),
        extra="delta",
        short_names=("DeltaSink",),
    ),
    _source(
        "connectors.files.source:FileStreamSourceConnector",
        ("org.apache.kafka.connect.file.FileStreamSourceConnector",),
    ),
    _sink(
        "connectors.files.sink:FileStreamSinkConnector",
        ("org.apache.kafka.connect.file.FileStreamSinkConnector",),
    ),
    _source(
        "connectors.folders.source:FileSourceConnector",
        ("tidegate.files.FileSourceConnector",),
        short_names=("FileSource",),
    ),
    *(
        _source(
            f"connectors.folders.source:SpoolDir{ours}Connector",
            (f"com.github.jcustenborder.kafka.connect.spooldir.SpoolDir{theirs}SourceConnector",),
        )
        for ours, theirs in (
            ("Avro", "Avro"),
            ("Binary", "BinaryFile"),
            ("Csv", "Csv"),
            ("Json", "Json"),
            ("Lines", "LineDelimited"),
            ("SchemalessJson", "SchemaLessJson"),
        )
    ),
    *(
        _source(
            f"connectors.folders.source:Sftp{ours}Connector",
            (f"io.confluent.connect.sftp.Sftp{theirs}SourceConnector",),
            needs=("paramiko",),
            extra="sftp",
        )
        for ours, theirs in (
            ("Binary", "BinaryFile"),
            ("Csv", "Csv"),
            ("Generic", "Generic"),
            ("Json", "Json"),
            ("SchemalessJson", "SchemaLessJson"),
        )
    ),
    _sink(
        "connectors.gcs.sink:GcsSinkConnector",
        ("io.confluent.connect.gcs.GcsSinkConnector",),
        needs=("obstore",),
        extra="objects",
    ),
    _source(
        "connectors.gcs.source:GcsSourceConnector",
        ("io.confluent.connect.gcs.GcsSourceConnector",),
        needs=("obstore",),
        extra="objects",
        short_names=("GcsSource",),
    ),
    _sink(
        "connectors.hdfs.sink:HdfsSinkConnector",
        ("io.confluent.connect.hdfs3.Hdfs3SinkConnector", "io.confluent.connect.hdfs.HdfsSinkConnector"),
        needs=("hdfs_native",),
        extra="hdfs",
    ),
    _sink(
        "connectors.http.sink:HttpSinkConnector",
        ("io.confluent.connect.http.HttpSinkConnector",),
        short_names=("HttpSink",),
    ),
    _sink(
        "connectors.http.sink:HttpSinkV2Connector",
        ("io.confluent.connect.http.sink.GenericHttpSinkConnector",),
        short_names=("HttpSinkV2",),
    ),
    _sink(
        "connectors.http.sink:AivenHttpSinkConnector",
        ("io.aiven.kafka.connect.http.HttpSinkConnector",),
    ),
    _sink(
        "connectors.iceberg.sink:IcebergSinkConnector",
        ("org.apache.iceberg.connect.IcebergSinkConnector", "io.tabular.iceberg.connect.IcebergSinkConnector"),
        needs=("pyiceberg", "sqlalchemy"),
        extra="iceberg",
    ),
    _source(
        "connectors.jdbc.source:JdbcSourceConnector",
        ("io.confluent.connect.jdbc.JdbcSourceConnector", "io.aiven.connect.jdbc.JdbcSourceConnector"),
        needs=("sqlalchemy", "adbc_driver_sqlite"),
        extra="jdbc",
        short_names=("PostgresSource",),
    ),
    _source(
        "connectors.jdbc.source:MySqlSourceConnector",
        ("tidegate.jdbc.MySqlSourceConnector",),
        needs=("sqlalchemy", "pymysql"),
        extra="mysql",
        short_names=("MySqlSource",),
    ),
    _sink(
        "connectors.jdbc.sink:JdbcSinkConnector",
        ("io.confluent.connect.jdbc.JdbcSinkConnector", "io.aiven.connect.jdbc.JdbcSinkConnector"),
        needs=("sqlalchemy", "adbc_driver_sqlite"),
        extra="jdbc",
        short_names=("PostgresSink",),
    ),
    _sink(
        "connectors.jdbc.sink:MySqlSinkConnector",
        ("tidegate.jdbc.MySqlSinkConnector",),
        needs=("sqlalchemy", "pymysql"),
        extra="mysql",
        short_names=("MySqlSink",),
    ),
    _sink(
        "connectors.jdbc.sink:DebeziumSinkConnector",
        ("io.debezium.connector.jdbc.JdbcSinkConnector",),
        needs=("sqlalchemy", "adbc_driver_sqlite"),
        extra="jdbc",
    ),
    _sink(
        "connectors.local.sink:LocalSinkConnector",
        ("tidegate.local.LocalSinkConnector",),
    ),
    _source(
        "connectors.mirror.checkpoints:MirrorCheckpointConnector",
        ("org.apache.kafka.connect.mirror.MirrorCheckpointConnector",),
    ),
    _source(
        "connectors.mirror.heartbeats:MirrorHeartbeatConnector",
        ("org.apache.kafka.connect.mirror.MirrorHeartbeatConnector",),
    ),
    _source(
        "connectors.mirror.source:MirrorSourceConnector",
        ("org.apache.kafka.connect.mirror.MirrorSourceConnector",),
    ),
    _source(
        "connectors.mysql.source:MySqlSource",
        ("io.debezium.connector.mysql.MySqlConnector",),
        needs=("pymysql", "pyarrow"),
        extra="mysql",
        short_names=("MySqlCdcSource", "MySqlCdcSourceV2"),
    ),
    _source(
        "connectors.mysql.source:MariaDbSource",
        ("io.debezium.connector.mariadb.MariaDbConnector",),
        needs=("pymysql", "pyarrow"),
        extra="mysql",
        short_names=("MariaDbCdcSource",),
    ),
    _source(
        "connectors.postgres.source:PostgresSource",
        ("io.debezium.connector.postgresql.PostgresConnector",),
        needs=("psycopg", "pyarrow"),
        extra="postgres",
        short_names=("PostgresCdcSource", "PostgresCdcSourceV2"),
    ),
    _sink(
        "connectors.s3.sink:S3SinkConnector",
        ("io.confluent.connect.s3.S3SinkConnector",),
    ),
    _sink(
        "connectors.s3.sink:CloudS3SinkConnector",
        ("tidegate.s3.CloudS3SinkConnector",),
        short_names=("S3_SINK",),
    ),
    _source(
        "connectors.s3.source:S3SourceConnector",
        ("io.confluent.connect.s3.source.S3SourceConnector",),
        short_names=("S3Source", "S3_SOURCE"),
    ),
    _source(
        "connectors.s3.source:AivenS3SourceConnector",
        ("io.aiven.kafka.connect.s3.source.S3SourceConnector",),
    ),
    _source(
        "connectors.salesforce.source:EventSource",
        ("io.confluent.salesforce.SalesforcePlatformEventSourceConnector",),
        needs=("simple_salesforce",),
        extra="salesforce",
        short_names=("SalesforcePlatformEventSource",),
    ),
    _sink(
        "connectors.salesforce.bulk_sink:BulkSink",
        ("tidegate.salesforce.BulkApiV2SinkConnector",),
        needs=("simple_salesforce",),
        extra="salesforce",
        short_names=("SalesforceBulkApiV2Sink",),
    ),
    _source(
        "connectors.salesforce.bulk_source:BulkSource",
        ("tidegate.salesforce.BulkApiV2SourceConnector",),
        needs=("simple_salesforce",),
        extra="salesforce",
        short_names=("SalesforceBulkApiV2Source",),
    ),
    _source(
        "connectors.salesforce.change_source:ChangeSource",
        ("io.confluent.salesforce.SalesforceCdcSourceConnector",),
        needs=("simple_salesforce",),
        extra="salesforce",
        short_names=("SalesforceCdcSource",),
    ),
    _source(
        "connectors.salesforce.object_source:ObjectSource",
        ("tidegate.salesforce.ObjectSourceConnector",),
        needs=("simple_salesforce",),
        extra="salesforce",
        short_names=("SalesforceSourceV2",),
    ),
    _source(
        "connectors.salesforce.push_topic_source:PushTopicSource",
        ("io.confluent.salesforce.SalesforcePushTopicSourceConnector",),
        needs=("simple_salesforce",),
        extra="salesforce",
        short_names=("SalesforcePushTopicSource",),
    ),
    _sink(
        "connectors.salesforce.sink:EventSink",
        ("io.confluent.salesforce.SalesforcePlatformEventSinkConnector",),
        needs=("simple_salesforce",),
        extra="salesforce",
        short_names=("SalesforcePlatformEventSink",),
    ),
    _sink(
        "connectors.salesforce.sink:ObjectSink",
        ("io.confluent.salesforce.SalesforceSObjectSinkConnector",),
        needs=("simple_salesforce",),
        extra="salesforce",
        short_names=("SalesforceSObjectSink",),
    ),
    _sink(
        "connectors.sftp.sink:SftpSinkConnector",
        ("tidegate.sftp.SftpSinkConnector", "io.confluent.connect.sftp.SftpSinkConnector"),
        needs=("paramiko",),
        extra="sftp",
    ),
    _sink(
        "connectors.spark.sink:SparkSinkConnector",
        ("tidegate.spark.SparkSinkConnector",),
        needs=("pyspark",),
        extra="spark",
    ),
    _sink(
        "connectors.spark.transform:SparkTransformConnector",
        ("tidegate.spark.SparkTransformConnector",),
        needs=("pyspark",),
        extra="spark",
    ),
    _sink(
        "connectors.spark.pipeline:SparkPipelineConnector",
        ("tidegate.spark.SparkPipelineConnector",),
        needs=("pyspark",),
        extra="spark",
    ),
    _source(
        "connectors.spark.source:SparkSourceConnector",
        ("tidegate.spark.SparkSourceConnector",),
        needs=("pyspark",),
        extra="spark",
    ),
    _source(
        "connectors.sqlite.source:SqliteSource",
        ("tidegate.sqlite.SqliteCdcSourceConnector",),
        short_names=("SqliteCdcSource",),
    ),
    _source(
        "connectors.telemetry.source:OtlpSource",
        ("tidegate.telemetry.OtlpSourceConnector",),
        needs=("opentelemetry.proto",),
        extra="telemetry",
    ),
    _source("connectors.telemetry.source:StatsdSource", ("tidegate.telemetry.StatsdSourceConnector",)),
    _source("connectors.telemetry.source:SyslogSource", ("tidegate.telemetry.SyslogSourceConnector",)),
)
"""Where each class is, and the names of the originals whose configurations it runs."""

TRANSFORMS: Final = (
    Plugin(
        PluginType.TRANSFORMATION,
        "connectors.postgres.timescale:TimescaleDb",
        ("io.debezium.connector.postgresql.transforms.timescaledb.TimescaleDb",),
        "3.5.0.Final",
        needs=("psycopg", "adbc_driver_postgresql"),
        extra="postgres",
    ),
)
"""Transformations that belong to one family of connectors."""


@hookimpl
def register_plugins() -> list[Plugin]:
    return [*CONNECTORS, *TRANSFORMS]
