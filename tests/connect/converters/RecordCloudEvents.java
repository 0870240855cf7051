// Writes what Debezium's CloudEventsConverter makes of random change events and of texts, one JSON object a line:
// (debezium-connector-mysql, which no other test needs, is fetched by hand into JARS)
//   java -Duser.timezone=UTC -cp '.servers/kafka/libs/*:.servers/debezium-postgres/plugins/debezium-postgres/*:.servers/debezium-mariadb/plugins/debezium-mariadb/*:JARS/*' \
//     tests/connect/converters/RecordCloudEvents.java | grep '"kind"' | gzip -9n > tests/connect/converters/cloud_events.jsonl.gz

import com.fasterxml.jackson.databind.*;
import com.fasterxml.jackson.databind.node.*;
import io.debezium.converters.CloudEventsConverter;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.connect.data.*;
import org.apache.kafka.connect.json.JsonConverter;

public class RecordCloudEvents {
    static final Random random = new Random(21);
    static final ObjectMapper mapper = new ObjectMapper();
    static final JsonConverter plain = new JsonConverter();

    public static void main(String[] arguments) throws Exception {
        plain.configure(Map.of("replace.null.with.default", "false"), false);
        for (int n = 0; n < 300; n++) write();
        for (String odd : new String[] {"{}", "[]", "5", "null", "{\"id\":\"1\"}", "{\"id\":\"1\",\"source\":\"s\",\"specversion\":\"1.0\",\"type\":\"t\",\"data\":{\"a\":1}}",
            "{\"id\":\"1\",\"source\":\"s\",\"specversion\":\"1.0\",\"type\":\"t\",\"data\":{\"schema\":{\"type\":\"int32\"},\"payload\":5}}",
            "{\"id\":\"1\",\"source\":\"s\",\"specversion\":\"1.0\",\"type\":\"t\",\"data\":{\"schema\":{\"type\":\"int32\"},\"payload\":5},\"x\":[1,null,{\"y\":2.5}]}",
            "{\"id\":\"1\",\"source\":\"s\",\"specversion\":\"1.0\",\"type\":\"t\",\"data\":7}", "{\"id\":\"1\",\"source\":\"s\",\"specversion\":\"1.0\",\"type\":\"t\"}",
            "{\"id\":\"1\",\"source\":\"s\",\"specversion\":\"1.0\",\"type\":\"t\",\"data\":null}", "{\"id\":null,\"source\":2,\"specversion\":[],\"type\":{},\"data\":\"text\"}", "{"})
            for (String schemas : new String[] {"true", "false"}) read(odd, Map.of("json.schemas.enable", schemas));
        for (String config : new String[] {"serializer.type=xml", "data.serializer.type=xml", "serializer.type=JSON", "metadata.source=nope", "metadata.source=generate", "metadata.source=header",
            "metadata.source=value,id:header", "metadata.source=value,id:nope", "metadata.source=value,nope:header", "metadata.source=value,id", "metadata.source=value,type:value", "metadata.source=",
            "extension.attributes.enable=maybe", "serializer.type=avro", "data.serializer.type=avro", "schema.name.adjustment.mode=nope", "schema.name.adjustment.mode=NONE", "schema.name.adjustment.mode=avro_unicode",
            "opentelemetry.tracing.attributes.enable=true"}) configure(config);
    }

    /** In place of Avro, which Maven Central has no converter for: JSON with its schema, in Confluent's framing. */
    static class Framed extends JsonConverter {
        @Override public byte[] fromConnectData(String topic, Schema schema, Object value) {
            byte[] json = super.fromConnectData(topic, schema, value);
            return java.nio.ByteBuffer.allocate(json.length + 5).put((byte) 0).putInt(topic.endsWith("-data") ? 8 : 7).put(json).array();
        }
        @Override public SchemaAndValue toConnectData(String topic, byte[] data) {
            return super.toConnectData(topic, data == null ? null : Arrays.copyOfRange(data, 5, data.length));
        }
    }

    static CloudEventsConverter converter(Map<String, String> config) {
        Framed framed = new Framed();
        framed.configure(Map.of(), false);
        CloudEventsConverter made = new CloudEventsConverter(framed);
        made.configure(config, false);
        return made;
    }

    static void configure(String text) throws Exception {
        String[] parts = text.split("=", -1);
        ObjectNode line = mapper.createObjectNode().put("kind", "configure").put("key", parts[0]).put("value", parts[1]);
        try {
            converter(Map.of(parts[0], parts[1]));
        } catch (RuntimeException error) {
            line.put("error", String.valueOf(error.getMessage()));
        }
        System.out.println(line);
    }

    static void read(String text, Map<String, String> config) throws Exception {
        ObjectNode line = mapper.createObjectNode().put("kind", "read").put("text", text);
        line.set("config", mapper.valueToTree(config));
        read(line, text.getBytes(StandardCharsets.UTF_8), config);
        System.out.println(line);
    }

    static void read(ObjectNode line, byte[] bytes, Map<String, String> config) throws Exception {
        try {
            SchemaAndValue made = converter(config).toConnectData("t", bytes);
            line.set("made", mapper.valueToTree(shown(made.value())));
        } catch (RuntimeException error) {
            line.put("unreadable", error.getClass().getSimpleName() + ": " + error.getMessage());
        }
    }

    /** A value without a schema, structs as maps. */
    static Object shown(Object value) {
        if (value instanceof Struct struct) {
            Map<String, Object> made = new LinkedHashMap<>();
            for (Field field : struct.schema().fields()) made.put(field.name(), shown(struct.get(field)));
            return made;
        }
        if (value instanceof List<?> list) return list.stream().map(RecordCloudEvents::shown).toList();
        if (!(value instanceof Map<?, ?> map)) return value;
        Map<Object, Object> made = new LinkedHashMap<>();
        map.forEach((k, v) -> made.put(k, shown(v)));
        return made;
    }

    static void write() throws Exception {
        Map<String, String> config = new LinkedHashMap<>();
        if (random.nextBoolean()) config.put("json.schemas.enable", "false");
        if (random.nextInt(3) == 0) config.put("extension.attributes.enable", "false");
        if (random.nextInt(4) == 0) config.put("schema.cloudevents.name", "Mine");
        if (random.nextInt(4) == 0) config.put("schema.name.adjustment.mode", "none");
        if (random.nextInt(4) == 0) config.put("json.decimal.format", "NUMERIC");
        if (random.nextInt(3) == 0) {
            config.put("data.serializer.type", "avro");
            config.put("avro.schema.registry.url", pick("http://registry:8081", "http://a:1, http://b:2"));
            if (random.nextBoolean()) config.put("serializer.type", "AVRO");
        }
        SchemaAndValue event = event();
        ObjectNode line = mapper.createObjectNode().put("kind", "write");
        line.set("config", mapper.valueToTree(config));
        if (event.value() != null) line.set("given", mapper.readTree(plain.fromConnectData("t", event.schema(), event.value())));
        try {
            byte[] made = converter(config).fromConnectData("t", new RecordHeaders(), event.schema(), event.value());
            line.put("written", made == null ? null : Base64.getEncoder().encodeToString(made));
            if (made != null) read(line, made, config);
        } catch (RuntimeException error) {
            line.put("error", error.getClass().getSimpleName() + ": " + error.getMessage());
        }
        System.out.println(line);
    }

    static SchemaAndValue event() {
        String connector = pick("postgresql", "postgresql", "mariadb", "mysql", "nosuch");
        SchemaBuilder source = SchemaBuilder.struct().name("io.debezium.connector." + connector + ".Source").field("version", Schema.STRING_SCHEMA).field("connector", Schema.STRING_SCHEMA)
            .field("name", Schema.STRING_SCHEMA).field("ts_ms", Schema.INT64_SCHEMA).field("snapshot", SchemaBuilder.string().optional().defaultValue("false").build())
            .field("db", Schema.STRING_SCHEMA).field("sequence", Schema.OPTIONAL_STRING_SCHEMA).field("ts_us", Schema.OPTIONAL_INT64_SCHEMA).field("table", Schema.STRING_SCHEMA);
        if (connector.startsWith("m")) source.field("server_id", Schema.INT64_SCHEMA).field("file", Schema.STRING_SCHEMA).field("pos", Schema.INT64_SCHEMA).field("row", Schema.INT32_SCHEMA);
        else source.field("schema", Schema.STRING_SCHEMA).field("txId", Schema.OPTIONAL_INT64_SCHEMA).field("lsn", Schema.OPTIONAL_INT64_SCHEMA).field("xmin", Schema.OPTIONAL_INT64_SCHEMA);
        if (random.nextInt(12) == 0) source.field("odd", random.nextBoolean() ? Schema.OPTIONAL_FLOAT64_SCHEMA : Schema.OPTIONAL_BOOLEAN_SCHEMA);
        Schema where = source.build();
        Struct from = new Struct(where).put("version", "3.5.0.Final").put("connector", connector).put("name", pick("server", "a.b-c")).put("ts_ms", moment()).put("db", pick("inventory", "my db")).put("table", "t");
        if (random.nextBoolean()) from.put("snapshot", pick("last", "true"));
        if (random.nextBoolean()) from.put("sequence", "[null,\"7\"]");
        if (random.nextBoolean()) from.put("ts_us", moment() * 1000);
        if (connector.startsWith("m")) from.put("server_id", 5L).put("file", "bin.000001").put("pos", 154L).put("row", 3);
        else {
            from.put("schema", "public");
            if (random.nextBoolean()) from.put("txId", 9L).put("lsn", random.nextLong());
        }
        Schema row = SchemaBuilder.struct().name("s.t.Value").optional().field("id", Schema.INT64_SCHEMA).field("name", SchemaBuilder.string().optional().defaultValue("none").build())
            .field("price", Decimal.builder(2).optional().build()).field("bytes", Schema.OPTIONAL_BYTES_SCHEMA).field("tags", SchemaBuilder.array(Schema.STRING_SCHEMA).optional().build()).build();
        SchemaBuilder block = SchemaBuilder.struct().name("event.block").optional().field("id", Schema.STRING_SCHEMA).field("total_order", Schema.INT64_SCHEMA).field("data_collection_order", Schema.INT64_SCHEMA);
        Schema transaction = block.build();
        SchemaBuilder builder = SchemaBuilder.struct().name(random.nextInt(12) == 0 ? "s.t.Value" : "s.t.Envelope").field("before", row).field("after", row).field("source", where)
            .field("op", Schema.STRING_SCHEMA).field("ts_ms", Schema.OPTIONAL_INT64_SCHEMA);
        if (random.nextBoolean()) builder.field("transaction", transaction);
        Schema envelope = builder.build();
        if (random.nextInt(15) == 0) return new SchemaAndValue(envelope, null);
        Struct value = new Struct(envelope).put("source", from).put("op", pick("c", "u", "d", "r"));
        if (random.nextBoolean()) value.put("ts_ms", moment());
        if (random.nextBoolean()) value.put("before", filled(row));
        if (random.nextBoolean()) value.put("after", filled(row));
        if (envelope.field("transaction") != null && random.nextBoolean())
            value.put("transaction", new Struct(transaction).put("id", "7:9").put("total_order", 1L).put("data_collection_order", 2L));
        return new SchemaAndValue(envelope, value);
    }

    static Struct filled(Schema row) {
        Struct made = new Struct(row).put("id", random.nextLong());
        if (random.nextInt(3) > 0) made.put("name", pick("Ann", "Zoë \"x\"", ""));
        if (random.nextInt(3) > 0) made.put("price", new java.math.BigDecimal(java.math.BigInteger.valueOf(random.nextInt()), 2));
        if (random.nextInt(3) == 0) made.put("bytes", new byte[] {1, (byte) 200});
        if (random.nextBoolean()) made.put("tags", List.of("x", "y"));
        return made;
    }

    static long moment() {
        return pick(0L, 1709201472123L, 1709201472000L, (long) random.nextInt() * 1000 + random.nextInt(1000));
    }

    @SafeVarargs
    static <T> T pick(T... from) {
        return from[random.nextInt(from.length)];
    }
}
