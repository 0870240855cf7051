"""The parts that all change data capture connectors share: Debezium's keys, envelope, topics and filters."""
