package io.confluent.kafka.serializers;

import java.nio.ByteBuffer;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.DecoderFactory;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.SchemaRegistryClient;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Deserializer;

/** Stands for Confluent's class of this name, which no public repository but theirs has: the same settings and bytes. */
public final class KafkaAvroDeserializer implements Deserializer<GenericRecord> {
    private SchemaRegistryClient registry;

    @Override
    public void configure(Map<String, ?> settings, boolean isKey) {
        registry = Registry.of(settings);
    }

    @Override
    public GenericRecord deserialize(String topic, byte[] value) {
        try {
            int id = ByteBuffer.wrap(value).getInt(1);
            Schema schema = new Schema.Parser().parse(registry.getSchemaById(id).canonicalString());
            var decoder = DecoderFactory.get().binaryDecoder(value, 5, value.length - 5, null);
            return new GenericDatumReader<GenericRecord>(schema).read(null, decoder);
        } catch (Exception e) {
            throw new SerializationException(e);
        }
    }
}
