// Writes what jcustenborder's kafka-connect-transform-common makes of records, one JSON object a line. LIBS has version 0.1.0.14, the newest on Maven Central, with its
// dependencies but those of Kafka and Jackson:
//   java -cp '.servers/kafka/libs/*:LIBS/*' tests/connect/transforms/RecordCommon.java | grep '"transform"' | gzip -9n > tests/connect/transforms/common.jsonl.gz

import com.fasterxml.jackson.databind.*;
import com.fasterxml.jackson.databind.node.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.data.*;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.transforms.Transformation;

public class RecordCommon {
    static final Random random = new Random(9);
    static final ObjectMapper mapper = new ObjectMapper();
    static final JsonConverter converter = new JsonConverter();

    public static void main(String[] arguments) throws Exception {
        converter.configure(Map.of("replace.null.with.default", "false"), false);
        String[] cases = {"LOWER_CAMEL", "LOWER_HYPHEN", "LOWER_UNDERSCORE", "UPPER_CAMEL", "UPPER_UNDERSCORE"};
        for (String from : cases)
            for (String to : cases)
                for (String topic : new String[] {"TOPIC_NAME", "topicName", "TopicName", "topic-name", "topic__name", "a", "A", "_x", "x_", "-", "ABC", "aB_cD-eF", "stra\u00dfe", "topic.name_X1", "\u00c4pfelOst"})
                    record("ChangeTopicCase", Map.of("from", from, "to", to), topic, null, null);
        record("ChangeTopicCase", Map.of("from", "lower_camel", "to", "UPPER_CAMEL"), "t", null, null);
        Schema inner = SchemaBuilder.struct().name("Inner").optional().field("city", Schema.STRING_SCHEMA).field("zip", SchemaBuilder.int32().optional().defaultValue(1000).build()).field("at", Timestamp.builder().optional().build()).build();
        for (boolean optional : new boolean[] {true, false}) {
            SchemaBuilder builder = SchemaBuilder.struct().name("Outer").field("id", Schema.INT64_SCHEMA).field("address", inner).field("word", SchemaBuilder.string().optional().defaultValue("none").build());
            if (optional) builder.optional();
            Schema outer = builder.build();
            for (int n = 0; n < 20; n++) {
                Struct value = new Struct(outer).put("id", random.nextLong());
                if (random.nextInt(5) > 0) {
                    Struct address = new Struct(inner).put("city", "Bern");
                    if (random.nextBoolean()) address.put("zip", 3000);
                    if (random.nextBoolean()) address.put("at", new java.util.Date(1709201472123L));
                    value.put("address", address);
                }
                if (random.nextBoolean()) value.put("word", "w");
                Map<String, String> config = new LinkedHashMap<>();
                config.put("input.outer.field.name", pick("address", "address", "address", "word", "nope"));
                config.put("input.inner.field.name", pick("city", "zip", "at", "nope"));
                // This version calls the new field like the inner one, whatever output.field.name says.
                config.put("output.field.name", config.get("input.inner.field.name"));
                record("ExtractNestedField$" + pick("Key", "Value"), config, "t", outer, value);
            }
        }
        for (Schema time : new Schema[] {Schema.INT64_SCHEMA, Schema.OPTIONAL_INT64_SCHEMA, Timestamp.SCHEMA, Timestamp.builder().optional().build(), org.apache.kafka.connect.data.Date.SCHEMA, Schema.STRING_SCHEMA, Schema.INT32_SCHEMA})
            for (String field : new String[] {"at", "nope"})
                for (String side : new String[] {"Value"}) {
                    Schema schema = SchemaBuilder.struct().field("at", time).build();
                    Object at = switch (time.type()) { case INT64 -> time.name() == null ? 1709201472123L : new java.util.Date(1709201472123L); case INT32 -> time.name() == null ? 7 : new java.util.Date(0); default -> "x"; };
                    record("ExtractTimestamp$" + side, Map.of("field.name", field), "t", schema, new Struct(schema).put("at", at));
                    if (time.isOptional()) record("ExtractTimestamp$" + side, Map.of("field.name", field), "t", schema, new Struct(schema));
                }
        for (Object at : new Object[] {5L, "x", 1.5, true})
            record("ExtractTimestamp$Value", Map.of("field.name", "at"), "t", null, Map.of("at", at));
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static void record(String name, Map<String, String> config, String topic, Schema schema, Object value) throws Exception {
        boolean key = name.endsWith("$Key");
        SinkRecord record = new SinkRecord(topic, 0, key ? schema : null, key ? value : null, key ? null : schema, key ? null : value, 7, 1000L, TimestampType.CREATE_TIME, new ConnectHeaders());
        // of the key or the value, ExtractTimestamp reads the value
        if (name.equals("ExtractTimestamp$Key")) record = new SinkRecord(topic, 0, null, null, schema, value, 7, 1000L, TimestampType.CREATE_TIME, new ConnectHeaders());
        ObjectNode line = mapper.createObjectNode().put("transform", name);
        line.set("config", mapper.valueToTree(config));
        line.set("record", encoded(record));
        Transformation transformation = (Transformation) Class.forName("com.github.jcustenborder.kafka.connect.transform.common." + name).getDeclaredConstructor().newInstance();
        try {
            transformation.configure(config);
        } catch (RuntimeException error) {
            System.out.println(line.put("refused", error.getMessage()));
            return;
        }
        try {
            SinkRecord made = (SinkRecord) transformation.apply(record);
            line.set("made", made == null ? null : encoded(made));
        } catch (RuntimeException error) {
            line.put("error", error.getClass().getSimpleName()).put("message", error.getMessage());
        }
        System.out.println(line);
    }

    @SafeVarargs
    static <T> T pick(T... from) {
        return from[random.nextInt(from.length)];
    }

    static JsonNode encoded(SinkRecord record) throws Exception {
        ObjectNode made = mapper.createObjectNode().put("topic", record.topic()).put("partition", record.kafkaPartition()).put("offset", record.kafkaOffset()).put("timestamp", record.timestamp());
        made.set("key", envelope(record.keySchema(), record.key()));
        made.set("value", envelope(record.valueSchema(), record.value()));
        made.putArray("headers");
        return made;
    }

    static JsonNode envelope(Schema schema, Object value) throws Exception {
        byte[] bytes = converter.fromConnectData("t", schema, value);
        return bytes == null ? mapper.nullNode() : mapper.readTree(new String(bytes, StandardCharsets.UTF_8));
    }
}
