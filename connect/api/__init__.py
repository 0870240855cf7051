"""What the author of a connector, a converter or a transform sees; everything is importable from here.

pyarrow is imported when a batch is made or read, not before.
"""

from connect.api.batch import MAX_BATCH_BYTES, Header, Origin, Record, RecordBatch, TopicPartition
from connect.api.connector import (
    Acknowledged,
    Connector,
    ConnectorContext,
    ErrantRecordReporter,
    JobTask,
    OffsetChanges,
    OffsetRange,
    SinkConnector,
    SinkTask,
    SinkTaskContext,
    SourceConnector,
    SourceTask,
    SourceTaskContext,
    Task,
    TaskContext,
    TransactionContext,
)
from connect.api.converter import Converted, Converter, ConverterContext, HeaderConverter
from connect.api.errors import ConnectError, DataError, RetriableConnectError
from connect.api.hookspecs import hookimpl
from connect.api.plugins import API_VERSION, Plugin, PluginType
from connect.api.rows import Rows, RowsConfig, RowsTask
from connect.api.schema import DATE, DECIMAL, TIME, TIMESTAMP, Field, Schema, SchemaType, schema_from_arrow
from connect.api.transform import Predicate, Transformation
from tidegate.kit.config import (
    Password,
    at_least,
    between,
    config,
    family,
    key,
    non_empty,
    one_of,
    time_zone,
    valid_regex,
    valid_regexes,
)
from tidegate.kit.errors import Problem
from tidegate.kit.java_regex import JavaRegex

__all__ = [
    "API_VERSION",
    "DATE",
    "DECIMAL",
    "MAX_BATCH_BYTES",
    "TIME",
    "TIMESTAMP",
    "Acknowledged",
    "ConnectError",
    "Connector",
    "ConnectorContext",
    "Converted",
    "Converter",
    "ConverterContext",
    "DataError",
    "ErrantRecordReporter",
    "Field",
    "Header",
    "HeaderConverter",
    "JavaRegex",
    "JobTask",
    "OffsetChanges",
    "OffsetRange",
    "Origin",
    "Password",
    "Plugin",
    "PluginType",
    "Predicate",
    "Problem",
    "Record",
    "RecordBatch",
    "RetriableConnectError",
    "Rows",
    "RowsConfig",
    "RowsTask",
    "Schema",
    "SchemaType",
    "SinkConnector",
    "SinkTask",
    "SinkTaskContext",
    "SourceConnector",
    "SourceTask",
    "SourceTaskContext",
    "Task",
    "TaskContext",
    "TopicPartition",
    "TransactionContext",
    "Transformation",
    "at_least",
    "between",
    "config",
    "family",
    "hookimpl",
    "key",
    "non_empty",
    "one_of",
    "schema_from_arrow",
    "time_zone",
    "valid_regex",
    "valid_regexes",
]
