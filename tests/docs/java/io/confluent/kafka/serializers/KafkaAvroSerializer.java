package io.confluent.kafka.serializers;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.util.Map;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.EncoderFactory;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.avro.AvroSchema;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.SchemaRegistryClient;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Serializer;

/** Stands for Confluent's class of this name, which no public repository but theirs has: the same settings and bytes. */
public final class KafkaAvroSerializer implements Serializer<GenericRecord> {
    private SchemaRegistryClient registry;

    @Override
    public void configure(Map<String, ?> settings, boolean isKey) {
        registry = Registry.of(settings);
    }

    @Override
    public byte[] serialize(String topic, GenericRecord value) {
        var bytes = new ByteArrayOutputStream();
        try (var out = new DataOutputStream(bytes)) {
            out.writeByte(0);
            out.writeInt(registry.register(topic + "-value", new AvroSchema(value.getSchema().toString())));
            var encoder = EncoderFactory.get().binaryEncoder(out, null);
            new GenericDatumWriter<GenericRecord>(value.getSchema()).write(value, encoder);
            encoder.flush();
        } catch (Exception e) {
            throw new SerializationException(e);
        }
        return bytes.toByteArray();
    }
}
