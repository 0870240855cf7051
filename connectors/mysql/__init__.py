"""Change data capture from MySQL and MariaDB through the binary log: Debezium's connectors for both."""
