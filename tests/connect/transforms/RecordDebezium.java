// Writes what Debezium's transformations make of random change events, one JSON object a line:
//   java -Duser.timezone=UTC -cp '.servers/kafka/libs/*:.servers/debezium/libs/*' tests/connect/transforms/RecordDebezium.java \
//     | grep transform | gzip -9n > tests/connect/transforms/debezium.jsonl.gz

import com.fasterxml.jackson.databind.*;
import com.fasterxml.jackson.databind.node.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.data.*;
import org.apache.kafka.connect.header.*;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.transforms.Transformation;

public class RecordDebezium {
    static final Random random = new Random(35);
    static final ObjectMapper mapper = new ObjectMapper();
    static final JsonConverter converter = new JsonConverter();

    public static void main(String[] arguments) throws Exception {
        converter.configure(Map.of("replace.null.with.default", "false"), false);
        for (int n = 0; n < 250; n++) record("ExtractNewRecordState");
        for (int n = 0; n < 200; n++) record("outbox.EventRouter");
        for (int n = 0; n < 60; n++) record("ByLogicalTableRouter");
        for (int n = 0; n < 250; n++) record("TimezoneConverter");
        for (int n = 0; n < 120; n++) record("ExtractChangedRecordState");
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static void record(String name) throws Exception {
        boolean outbox = name.contains("outbox");
        boolean zoned = name.equals("TimezoneConverter");
        Map<String, String> zones = zoned ? zoneConfig() : null;
        ConnectRecord record = zoned ? timed(!zones.get("converted.timezone").contains("America")) : event(outbox);
        Map<String, String> config = zoned ? zones : outbox ? outboxConfig() : name.startsWith("By") ? tableConfig() : name.contains("Changed") ? changedConfig() : stateConfig();
        ObjectNode line = mapper.createObjectNode();
        line.put("transform", name);
        line.set("config", mapper.valueToTree(config));
        line.set("record", encoded(record));
        Transformation transformation = (Transformation)
            Class.forName("io.debezium.transforms." + name).getDeclaredConstructor().newInstance();
        try {
            transformation.configure(config);
        } catch (RuntimeException error) {
            line.put("refused", error.getMessage());
            System.out.println(line);
            return;
        }
        try {
            ConnectRecord made = transformation.apply(record);
            line.set("made", made == null ? null : encoded(made));
        } catch (RuntimeException error) {
            line.put("error", error.getClass().getSimpleName());
            line.put("message", error.getMessage());
        }
        System.out.println(line);
    }

    static Map<String, String> stateConfig() {
        Map<String, String> config = new LinkedHashMap<>();
        if (random.nextInt(4) > 0) config.put("delete.tombstone.handling.mode", pick("drop", "tombstone", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone"));
        if (random.nextInt(2) > 0) config.put("add.fields", pick("op", "op,source.ts_ms", "ts_ms:when,table", "transaction.id,id", "nope", "source.nope,lsn:position"));
        if (random.nextInt(3) == 0) config.put("add.headers", pick("op", "op,table", "ts_ms:when", "transaction.total_order"));
        if (random.nextInt(4) == 0) config.put("add.fields.prefix", pick("", "x_"));
        if (random.nextInt(4) == 0) config.put("add.headers.prefix", "");
        if (random.nextInt(4) == 0) config.put("route.by.field", "name");
        if (random.nextInt(4) == 0) config.put("replace.null.with.default", "false");
        if (random.nextInt(3) == 0) config.put("drop.fields.header.name", "drop");
        if (random.nextInt(4) == 0) config.put("drop.fields.from.key", "true");
        if (random.nextInt(4) == 0) config.put("drop.fields.keep.schema.compatible", "false");
        return config;
    }

    static Map<String, String> outboxConfig() {
        Map<String, String> config = new LinkedHashMap<>();
        if (random.nextInt(3) == 0) config.put("table.field.event.key", pick("id", "nope", "aggregateid"));
        if (random.nextInt(3) == 0) config.put("table.field.event.timestamp", pick("created", "number"));
        if (random.nextInt(2) == 0)
            config.put("table.fields.additional.placement", pick("type:header", "type:envelope", "type:header:eventType,number:envelope:n", "nope:header", "slot:partition", "nope:envelope"));
        if (random.nextInt(3) == 0) config.put("table.field.additional.missing", pick("error", "ignore"));
        if (random.nextInt(3) == 0) config.put("table.op.invalid.behavior", pick("warn", "error", "fatal"));
        if (random.nextInt(2) == 0) config.put("table.expand.json.payload", "true");
        if (random.nextInt(3) == 0) config.put("table.json.payload.null.behavior", pick("ignore", "optional_bytes"));
        if (random.nextInt(3) == 0) config.put("table.json.payload.empty.array.behavior", pick("ignore", "optional_string"));
        if (random.nextInt(3) == 0) config.put("route.by.field", pick("type", "aggregatetype", "nope"));
        if (random.nextInt(3) == 0) config.put("route.topic.regex", "(?<routedByValue>[a-z]+)_?(.*)");
        if (random.nextInt(3) == 0) config.put("route.topic.replacement", pick("events.${routedByValue}", "all"));
        if (random.nextInt(3) == 0) config.put("route.tombstone.on.empty.payload", "true");
        if (random.nextInt(4) == 0) config.put("table.field.event.schema.version", "slot");
        return config;
    }

    static Map<String, String> tableConfig() {
        Map<String, String> config = new LinkedHashMap<>();
        config.put("topic.regex", pick("(.*)_shard(\\d+)", "(.*)", "none"));
        config.put("topic.replacement", config.get("topic.regex").equals("none") ? "x" : pick("$1", "$1-all"));
        if (random.nextInt(3) == 0) config.put("key.enforce.uniqueness", "false");
        if (random.nextInt(3) == 0) config.put("key.field.name", "shard");
        if (random.nextInt(3) == 0) {
            config.put("key.field.regex", "(.*)_shard(\\d+)");
            config.put("key.field.replacement", "$2");
        }
        return config;
    }

    static Map<String, String> changedConfig() {
        Map<String, String> config = new LinkedHashMap<>();
        if (random.nextInt(4) > 0) config.put("header.changed.name", "changed");
        if (random.nextInt(4) > 0) config.put("header.unchanged.name", "unchanged");
        return config;
    }

    static Map<String, String> zoneConfig() {
        Map<String, String> config = new LinkedHashMap<>();
        config.put("converted.timezone", pick("+08:00", "-03:30", "Asia/Tokyo", "UTC", "America/New_York", "America/New_York", "Mars/Olympus", "8"));
        if (random.nextInt(3) > 0)
            config.put(random.nextBoolean() ? "include.list" : "exclude.list", pick("source:t", "source:t:zoned", "topic:s.t_shard1", "topic:s.t:micro", "t:milli", "source:t:source.ts_ms",
                "source:t:before.zoned,source:t:after.nano", "source:u", "t:zoned,milli", "source:t:a:b", "s.t", "source:t:plain", "topic:s.t_shard1:stamp,source:t:nano", "source:t,u"));
        if (random.nextInt(20) == 0) { config.put("include.list", "source:t"); config.put("exclude.list", "source:u"); }
        return config;
    }

    static ConnectRecord timed(boolean fixed) {
        SchemaBuilder builder = SchemaBuilder.struct().name("s.t_shard1.Value").optional().field("id", Schema.INT64_SCHEMA)
            .field("zoned", SchemaBuilder.string().name("io.debezium.time.ZonedTimestamp").optional().build())
            .field("micro", SchemaBuilder.int64().name("io.debezium.time.MicroTimestamp").optional().build())
            .field("nano", SchemaBuilder.int64().name("io.debezium.time.NanoTimestamp").optional().build())
            .field("milli", SchemaBuilder.int64().name("io.debezium.time.Timestamp").optional().build())
            .field("stamp", Timestamp.builder().optional().build())
            .field("day", SchemaBuilder.int32().name("io.debezium.time.Date").optional().build())
            .field("plain", Schema.OPTIONAL_INT64_SCHEMA);
        // The zone's distance from UTC today decides what a time without a day becomes.
        if (fixed) builder.field("clock", SchemaBuilder.string().name("io.debezium.time.ZonedTime").optional().build());
        Schema row = builder.build();
        Schema source = SchemaBuilder.struct().name("io.debezium.connector.postgresql.Source").field("ts_ms", Schema.INT64_SCHEMA).field("ts_us", Schema.OPTIONAL_INT64_SCHEMA)
            .field("ts_ns", Schema.OPTIONAL_INT64_SCHEMA).field("table", Schema.STRING_SCHEMA).build();
        Schema envelope = SchemaBuilder.struct().name(random.nextInt(12) == 0 ? "s.t.Value" : "s.t_shard1.Envelope").field("before", row).field("after", row).field("source", source)
            .field("op", Schema.STRING_SCHEMA).build();
        Struct value = new Struct(envelope).put("op", "u").put("source", new Struct(source).put("ts_ms", moment(1_000L)).put("ts_us", moment(1_000_000L)).put("ts_ns", moment(1_000_000_000L)).put("table", "t"));
        if (random.nextBoolean()) value.put("before", times(row));
        if (random.nextInt(4) > 0) value.put("after", times(row));
        boolean tombstone = random.nextInt(15) == 0;
        return new SinkRecord(pick("s.t_shard1", "s.t"), 0, null, null, tombstone ? null : envelope, tombstone ? null : value, 7, 1000L, TimestampType.CREATE_TIME, new ConnectHeaders());
    }

    static long moment(long perSecond) {
        // Around the changes of New York's clocks in 2024, and anywhere between 1920 and 2020.
        long second = pick(1710054000L, 1730613600L, 1730610000L, (long) random.nextInt() * 3 / 4) + random.nextInt(7200) - 3600;
        return second * perSecond + random.nextInt((int) Math.min(perSecond, 1_000_000_000L));
    }

    static Struct times(Schema row) {
        Struct made = new Struct(row).put("id", 1L);
        if (random.nextInt(4) > 0) made.put("zoned", java.time.Instant.ofEpochSecond(moment(1L)).atOffset(pick(java.time.ZoneOffset.UTC, java.time.ZoneOffset.ofHours(-5), java.time.ZoneOffset.ofHoursMinutes(5, 30)))
            .format(java.time.format.DateTimeFormatter.ISO_OFFSET_DATE_TIME).replaceFirst("(:\\d\\d)([Z+-][^T]*)$", "$1" + pick("", ".5", ".678", ".678900") + "$2"));
        if (random.nextInt(4) > 0) made.put("micro", moment(1_000_000L));
        if (random.nextInt(4) > 0) made.put("nano", moment(1_000_000_000L));
        if (random.nextInt(4) > 0) made.put("milli", moment(1_000L));
        if (random.nextInt(4) > 0) made.put("stamp", new java.util.Date(moment(1_000L)));
        if (random.nextInt(4) > 0) made.put("day", random.nextInt(20000));
        if (random.nextInt(4) > 0) made.put("plain", moment(1_000L));
        if (row.field("clock") != null && random.nextInt(4) > 0) made.put("clock", pick("03:04:05Z", "23:59:59.5+02:00", "00:00:00.123456-11:00"));
        return made;
    }

    // -- change events

    static ConnectRecord event(boolean outbox) {
        Schema row = outbox ? outboxRow() : row();
        Schema source = SchemaBuilder.struct().name("io.debezium.connector.postgresql.Source").field("connector", Schema.STRING_SCHEMA).field("ts_ms", Schema.INT64_SCHEMA)
            .field("table", Schema.STRING_SCHEMA).field("lsn", Schema.OPTIONAL_INT64_SCHEMA).build();
        Schema transaction = SchemaBuilder.struct().name("event.block").field("id", Schema.STRING_SCHEMA).field("total_order", Schema.INT64_SCHEMA).optional().build();
        boolean foreign = random.nextInt(12) == 0;
        Schema envelope = SchemaBuilder.struct().name(foreign ? "s.t.Value" : "s.t_shard1.Envelope").field("before", row).field("after", row).field("source", source)
            .field("op", Schema.STRING_SCHEMA).field("ts_ms", Schema.OPTIONAL_INT64_SCHEMA).field("transaction", transaction).build();
        Schema key = SchemaBuilder.struct().name("s.t_shard1.Key").field("id", Schema.INT64_SCHEMA).field("extra", Schema.OPTIONAL_STRING_SCHEMA).build();
        Struct keyed = new Struct(key).put("id", random.nextLong());
        String op = pick("c", "c", "r", "u", "d", "t");
        Struct value = null;
        if (random.nextInt(8) > 0) {
            value = new Struct(envelope).put("op", op).put("source", new Struct(source).put("connector", "postgresql").put("ts_ms", 5L).put("table", "t"));
            if (random.nextBoolean()) value.put("ts_ms", (long) random.nextInt());
            if (random.nextBoolean()) value.put("transaction", new Struct(transaction).put("id", "tx").put("total_order", 3L));
            if (!op.equals("d") && !op.equals("t")) value.put("after", filled(row, outbox));
            if (op.equals("d") || (op.equals("u") && random.nextBoolean())) value.put("before", filled(row, outbox));
        }
        ConnectHeaders headers = new ConnectHeaders();
        if (random.nextInt(3) == 0) headers.addString("h", "v");
        if (random.nextInt(2) == 0) headers.addList("drop", pick(List.of("name"), List.of("id", "name", "extra"), List.of("extra")), SchemaBuilder.array(Schema.STRING_SCHEMA).build());
        if (outbox) // routes records of sources, which need no partition
            return new SourceRecord(Map.of(), Map.of(), "s.t", null, key, keyed, value == null ? null : envelope, value, 1000L, headers);
        return new SinkRecord(pick("s.t_shard1", "s.t"), 0, key, keyed, value == null ? null : envelope, value, 7, 1000L, TimestampType.CREATE_TIME, headers);
    }

    static Schema row() {
        return SchemaBuilder.struct().name("s.t_shard1.Value").optional().field("id", Schema.INT64_SCHEMA).field("name", SchemaBuilder.string().optional().defaultValue("none").build())
            .field("at", random.nextBoolean() ? Timestamp.builder().optional().build() : Schema.OPTIONAL_INT64_SCHEMA).field("tags", SchemaBuilder.array(Schema.STRING_SCHEMA).optional().build()).build();
    }

    static Schema outboxRow() {
        SchemaBuilder builder = SchemaBuilder.struct().name("s.t.Value").optional().field("id", Schema.STRING_SCHEMA).field("aggregatetype", Schema.STRING_SCHEMA)
            .field("aggregateid", Schema.STRING_SCHEMA).field("type", Schema.STRING_SCHEMA).field("number", Schema.INT64_SCHEMA).field("slot", Schema.INT32_SCHEMA)
            .field("created", SchemaBuilder.int64().name(pick("io.debezium.time.MicroTimestamp", "io.debezium.time.Timestamp", "io.debezium.time.NanoTimestamp")).optional().build());
        if (random.nextInt(10) > 0) builder.field("payload", pick(Schema.OPTIONAL_STRING_SCHEMA, Schema.OPTIONAL_STRING_SCHEMA, Schema.OPTIONAL_BYTES_SCHEMA));
        return builder.build();
    }

    static Struct filled(Schema row, boolean outbox) {
        Struct made = new Struct(row);
        if (!outbox) {
            made.put("id", random.nextLong());
            if (random.nextInt(3) > 0) made.put("name", pick("a", "b", "", "other"));
            if (row.field("tags") != null && random.nextBoolean()) made.put("tags", List.of("x", "y"));
            return made;
        }
        made.put("id", "e1").put("aggregatetype", pick("order", "user_x")).put("aggregateid", "42").put("type", pick("Created", "Paid")).put("number", 9L).put("slot", 2);
        if (random.nextBoolean()) made.put("created", 1709201472123456L);
        if (row.field("payload") == null) return made;
        if (row.field("payload").schema().type() == Schema.Type.BYTES) made.put("payload", random.nextBoolean() ? new byte[] {1, 2} : null);
        else made.put("payload", pick("{\"a\":1,\"b\":[1,2],\"c\":{\"d\":null,\"e\":\"x\"}}", "{\"a\":[],\"n\":5000000000,\"f\":1.5,\"t\":true}", "plain", "", null,
            "{\"l\":[{\"x\":1},{\"x\":2,\"y\":\"z\"}]}", "{\"m\":[1,\"a\"]}", "{broken", "{\"x\":[null]}"));
        return made;
    }

    @SafeVarargs
    static <T> T pick(T... from) {
        return from[random.nextInt(from.length)];
    }

    // -- JSON

    static JsonNode encoded(ConnectRecord record) throws Exception {
        ObjectNode made = mapper.createObjectNode();
        made.put("topic", record.topic());
        if (record.kafkaPartition() != null) made.put("partition", record.kafkaPartition());
        if (record instanceof SinkRecord sink) made.put("offset", sink.kafkaOffset());
        if (record.timestamp() != null) made.put("timestamp", record.timestamp());
        made.set("key", envelope(record.keySchema(), record.key()));
        made.set("value", envelope(record.valueSchema(), record.value()));
        ArrayNode headers = made.putArray("headers");
        for (Header header : (Headers) record.headers()) headers.addObject().put("key", header.key()).set("value", envelope(header.schema(), header.value()));
        return made;
    }

    static JsonNode envelope(Schema schema, Object value) throws Exception {
        try {
            byte[] bytes = converter.fromConnectData("t", schema, schema == null ? withoutDates(value) : value);
            return bytes == null ? mapper.nullNode() : mapper.readTree(new String(bytes, StandardCharsets.UTF_8));
        } catch (RuntimeException error) {
            return mapper.createObjectNode().put("unwritable", String.valueOf(error.getMessage()));
        }
    }

    static Object withoutDates(Object value) {
        if (value instanceof java.util.Date date) return date.getTime();
        if (!(value instanceof Map<?, ?> map)) return value;
        Map<Object, Object> made = new LinkedHashMap<>();
        map.forEach((k, v) -> made.put(k, withoutDates(v)));
        return made;
    }
}
