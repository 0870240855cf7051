-- What Debezium's TimescaleDb reads of TimescaleDB's catalog, in a database without TimescaleDB.
CREATE SCHEMA _timescaledb_catalog;
CREATE TABLE _timescaledb_catalog.hypertable (id int PRIMARY KEY, schema_name name, table_name name);
CREATE TABLE _timescaledb_catalog.chunk (id int PRIMARY KEY, hypertable_id int, schema_name name, table_name name);
CREATE TABLE _timescaledb_catalog.continuous_agg (mat_hypertable_id int PRIMARY KEY, user_view_schema name, user_view_name name);
INSERT INTO _timescaledb_catalog.hypertable VALUES (1, 'public', 'conditions'), (2, '_timescaledb_internal', '_materialized_hypertable_2');
INSERT INTO _timescaledb_catalog.chunk VALUES (1, 1, '_timescaledb_internal', '_hyper_1_1_chunk'), (2, 1, 'other', '_hyper_1_2_chunk'), (3, 2, '_timescaledb_internal', '_hyper_2_3_chunk');
INSERT INTO _timescaledb_catalog.continuous_agg VALUES (2, 'public', 'conditions_summary');
