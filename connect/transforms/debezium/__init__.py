"""The transformations that come with Debezium and that its users put into connectors of any kind."""
