package io.confluent.kafka.serializers;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.CachedSchemaRegistryClient;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.SchemaRegistryClient;

/** Confluent's client of a registry, with the settings of a Kafka client, as Confluent's serializers make it. */
final class Registry {
    private Registry() {}

    static SchemaRegistryClient of(Map<String, ?> settings) {
        String url = (String) settings.get("schema.registry.url");
        return new CachedSchemaRegistryClient(List.of(url.split(",")), 1000, new HashMap<>(settings));
    }
}
