// Writes what Kafka Connect's own transformations make of random records, one JSON object a line:
//   java -Duser.timezone=UTC -cp '.servers/kafka/libs/*' tests/connect/transforms/RecordTransforms.java \
//     | gzip -9n > tests/connect/transforms/recorded.jsonl.gz

import com.fasterxml.jackson.databind.*;
import com.fasterxml.jackson.databind.node.*;
import java.math.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.data.*;
import org.apache.kafka.connect.header.*;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.transforms.*;

public class RecordTransforms {
    static final int CASES = 60;
    static final Random random = new Random(821);
    static final ObjectMapper mapper = new ObjectMapper();
    static final JsonConverter converter = new JsonConverter();
    static final String[] NAMES = {"id", "name", "at", "amount", "flag", "data", "inner", "tags", "f.x", "day"};

    public static void main(String[] arguments) throws Exception {
        converter.configure(Map.of("replace.null.with.default", "false"), false);
        String[] sided = {"Cast", "ExtractField", "Flatten", "HeaderFrom", "HoistField", "InsertField", "MaskField", "ReplaceField",
            "SetSchemaMetadata", "TimestampConverter"};
        for (String name : sided)
            for (int n = 0; n < 2 * CASES; n++) record(name + (n % 4 == 0 ? "$Key" : "$Value"));
        for (String name : new String[] {"DropHeaders", "InsertHeader", "RegexRouter", "TimestampRouter", "ValueToKey"})
            for (int n = 0; n < CASES; n++) record(name);
    }

    @SuppressWarnings("unchecked")
    static void record(String name) throws Exception {
        SinkRecord record = randomRecord(name);
        Object operated = name.endsWith("$Key") ? record.key() : record.value();
        Schema schema = name.endsWith("$Key") ? record.keySchema() : record.valueSchema();
        Map<String, String> config = config(name.split("\\$")[0], schema, operated);
        ObjectNode line = mapper.createObjectNode();
        line.put("transform", name);
        line.set("config", mapper.valueToTree(config));
        line.set("record", encoded(record));
        Transformation<SinkRecord> transformation = (Transformation<SinkRecord>)
            Class.forName("org.apache.kafka.connect.transforms." + name).getDeclaredConstructor().newInstance();
        try {
            transformation.configure(config);
        } catch (RuntimeException error) {
            line.put("refused", error.getMessage());
            System.out.println(line);
            return;
        }
        try {
            line.set("made", encoded(transformation.apply(record)));
        } catch (RuntimeException error) {
            line.put("error", error.getClass().getSimpleName());
            line.put("message", error.getMessage());
        }
        System.out.println(line);
    }

    // -- configurations

    static Map<String, String> config(String name, Schema schema, Object value) {
        Map<String, String> config = new LinkedHashMap<>();
        String field = fieldOf(schema, value), other = fieldOf(schema, value);
        switch (name) {
            case "Cast" -> {
                String[] types = {"int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string"};
                if (schema != null && schema.type() != Schema.Type.STRUCT || random.nextInt(12) == 0)
                    config.put("spec", pick(types));
                else
                    config.put("spec", field + ":" + pick(types) + (other.equals(field) ? "" : "," + other + ":" + pick(types)));
                if (random.nextInt(25) == 0) config.put("spec", pick("a:b:c", "a:bytes", "int8,a:int8", "a:nope"));
            }
            case "ExtractField" -> {
                config.put("field", field);
                if (random.nextBoolean()) {
                    config.put("field.syntax.version", "V2");
                    config.put("field", pick(field, "inner.name", "inner.id", "inner.nope", "`f.x`", "inner.`f.x`", "id.x", "`f.x", "inner."));
                }
            }
            case "Flatten" -> { if (random.nextBoolean()) config.put("delimiter", pick("_", "::", "")); }
            case "HeaderFrom" -> {
                config.put("fields", field + (random.nextBoolean() || other.equals(field) ? "" : "," + other));
                config.put("headers", config.get("fields").contains(",") ? "h1,h2" : "h1");
                config.put("operation", pick("move", "copy"));
            }
            case "HoistField" -> config.put("field", pick("whole", "id"));
            case "InsertField" -> {
                if (random.nextBoolean()) config.put("topic.field", pick("t", "t!", "t?"));
                if (random.nextBoolean()) config.put("partition.field", pick("p", "p!", "p?"));
                if (random.nextBoolean()) config.put("offset.field", pick("o", "o!"));
                if (random.nextBoolean()) config.put("timestamp.field", pick("ts", "ts!", "ts?"));
                if (random.nextBoolean()) config.put("static.field", pick("s", "s!", "id"));
                if (random.nextInt(5) > 0) config.put("static.value", pick("fixed", "7", ""));
            }
            case "MaskField" -> {
                config.put("fields", field);
                if (random.nextBoolean()) config.put("replacement", pick("42", "xxx", "1.5", "-3", "300"));
            }
            case "ReplaceField" -> {
                if (random.nextInt(3) > 0) config.put(random.nextBoolean() ? "exclude" : "include", field);
                if (random.nextBoolean()) config.put("renames", other + ":" + pick("renamed", "x y"));
            }
            case "SetSchemaMetadata" -> {
                if (random.nextInt(5) > 0) config.put("schema.name", pick("Fresh", "a.b.C"));
                if (random.nextBoolean()) config.put("schema.version", pick("1", "7"));
            }
            case "TimestampConverter" -> {
                if (schema == null || schema.type() == Schema.Type.STRUCT) config.put("field", random.nextInt(3) > 0 ? pick("at", "day") : field);
                config.put("target.type", pick("string", "unix", "Date", "Time", "Timestamp"));
                if (random.nextInt(6) > 0)
                    config.put("format", pick("yyyy-MM-dd HH:mm:ss", "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'", "dd MMM yyyy, h:mm a", "yyyyMMdd", "EEE dd.MM.yy HH:mm:ss Z",
                        "D y kk:mm X", "yyyy-MM-dd"));
                if (random.nextBoolean()) config.put("unix.precision", pick("seconds", "milliseconds", "microseconds", "nanoseconds"));
            }
            case "DropHeaders" -> config.put("headers", pick("h1", "h2,h3", "h1,none", "h1,h1"));
            case "InsertHeader" -> {
                config.put("header", "made");
                config.put("value.literal", pick("text", "7", "-300", "70000", "5000000000", "1.5", "true", "null", "[1,2,300]", "{\"a\":1,\"b\":2}", "2024-02-29",
                    "10:11:12.123Z", "2024-02-29T10:11:12.123Z", "[\"x\",\"y\"]", "", " ", "99999999999999999999"));
            }
            case "RegexRouter" -> {
                config.put("regex", pick("(.*)", "orders", "(?<a>o.*)s", "ord", "[a-z]+-(\\d+)", ".*"));
                config.put("replacement", pick(config.get("regex").contains("(") ? "x-$1" : "$0", "new", "$0-y", "\\$z"));
            }
            case "TimestampRouter" -> {
                if (random.nextBoolean()) config.put("topic.format", pick("${timestamp}", "${topic}_${timestamp}_${topic}", "plain"));
                if (random.nextBoolean()) config.put("timestamp.format", pick("yyyy-MM-dd", "yyyyMM", "YYYY-'W'ww-u", "HH", "yy.D.W.F", "hh:mm:ss.SSS aa", "G yyyyy MMMM EEEE z"));
            }
            case "ValueToKey" -> config.put("fields", field + (other.equals(field) ? "" : "," + other));
        }
        if (random.nextInt(4) == 0 && !List.of("Flatten", "HoistField", "DropHeaders", "InsertHeader", "RegexRouter", "TimestampRouter").contains(name))
            config.put("replace.null.with.default", "false");
        return config;
    }

    static String fieldOf(Schema schema, Object value) {
        if (random.nextInt(15) == 0) return "nope";
        List<String> names = new ArrayList<>();
        if (schema != null && schema.type() == Schema.Type.STRUCT) schema.fields().forEach(f -> names.add(f.name()));
        else if (value instanceof Map<?, ?> map) map.keySet().forEach(k -> names.add((String) k));
        return names.isEmpty() ? "id" : names.get(random.nextInt(names.size()));
    }

    // -- records

    static SinkRecord randomRecord(String transform) {
        boolean key = transform.endsWith("$Key");
        SchemaAndValue operated = operated(transform), other = random.nextBoolean() ? new SchemaAndValue(null, null) : operated("");
        ConnectHeaders headers = new ConnectHeaders();
        for (int n = random.nextInt(4); n > 0; n--) headers.add("h" + (1 + random.nextInt(3)), "v" + n, Schema.STRING_SCHEMA);
        SchemaAndValue k = key ? operated : other, v = key ? other : operated;
        Long timestamp = random.nextInt(8) == 0 ? null : times();
        return new SinkRecord(pick("orders", "orders-7", "o"), random.nextInt(5), k.schema(), k.value(), v.schema(), v.value(), random.nextInt(1000), timestamp,
            TimestampType.CREATE_TIME, headers);
    }

    static SchemaAndValue operated(String transform) {
        int kind = random.nextInt(10);
        if (kind < 3) return new SchemaAndValue(null, random.nextInt(10) == 0 ? plain(0) : map(0));
        boolean scalar = kind == 3 || (kind < 6 && transform.startsWith("TimestampConverter"));
        Schema schema = scalar ? scalarSchema(transform.startsWith("TimestampConverter")) : struct(0);
        return new SchemaAndValue(schema, schema.isOptional() && random.nextInt(6) == 0 ? null : value(schema));
    }

    static Object plain(int depth) {
        return switch (random.nextInt(depth > 2 ? 6 : 8)) {
            case 0 -> null;
            case 1 -> random.nextLong() >> random.nextInt(64);
            case 2 -> pick(1.5, -0.25, 1e30, 3.0, 1e-7);
            case 3 -> random.nextBoolean();
            case 4, 5 -> text();
            case 6 -> new ArrayList<>(Arrays.asList(plain(depth + 2), plain(depth + 2)));
            default -> map(depth + 1);
        };
    }

    static Map<String, Object> map(int depth) {
        Map<String, Object> made = new LinkedHashMap<>();
        for (String name : NAMES) if (random.nextInt(3) > 0) made.put(name, name.equals("inner") && random.nextBoolean() && depth < 2 ? map(depth + 1) : plain(depth));
        return made;
    }

    static Schema scalarSchema(boolean time) {
        SchemaBuilder builder = builder(time ? pick(2, 3, 7, 9, 10, 11) : random.nextInt(13), 0);
        return finish(builder);
    }

    static Schema struct(int depth) {
        SchemaBuilder builder = SchemaBuilder.struct();
        for (String name : NAMES) {
            if (random.nextInt(3) == 0) continue;
            boolean nested = name.equals("inner") && depth < 2 && random.nextInt(4) > 0;
            boolean time = name.equals("at") || name.equals("day");
            builder.field(name, nested ? struct(depth + 1) : finish(builder(time ? pick(2, 3, 7, 9, 10, 11, 3, 7) : random.nextInt(15), depth)));
        }
        return finish(builder);
    }

    static SchemaBuilder builder(int kind, int depth) {
        return switch (kind) {
            case 0 -> SchemaBuilder.int8();
            case 1 -> SchemaBuilder.int16();
            case 2 -> SchemaBuilder.int32();
            case 3 -> SchemaBuilder.int64();
            case 4 -> SchemaBuilder.float32();
            case 5 -> SchemaBuilder.float64();
            case 6 -> SchemaBuilder.bool();
            case 7 -> SchemaBuilder.string();
            case 8 -> SchemaBuilder.bytes();
            case 9 -> org.apache.kafka.connect.data.Date.builder();
            case 10 -> Time.builder();
            case 11 -> Timestamp.builder();
            case 12 -> Decimal.builder(2);
            case 13 -> SchemaBuilder.array(Schema.OPTIONAL_INT32_SCHEMA);
            default -> SchemaBuilder.map(Schema.STRING_SCHEMA, Schema.OPTIONAL_FLOAT64_SCHEMA);
        };
    }

    static Schema finish(SchemaBuilder builder) {
        if (random.nextBoolean()) builder.optional();
        if (builder.name() == null && random.nextInt(5) == 0) builder.name("a.Named").version(3).doc("why").parameter("p", "q");
        if (builder.type() != Schema.Type.STRUCT && random.nextInt(4) == 0) builder.defaultValue(value(builder.build()));
        return builder.build();
    }

    static Object value(Schema schema) {
        if (schema.name() != null) switch (schema.name()) {
            case "org.apache.kafka.connect.data.Date": return new java.util.Date((random.nextInt(60000) - 20000) * 86400000L);
            case "org.apache.kafka.connect.data.Time": return new java.util.Date(random.nextInt(86400000));
            case "org.apache.kafka.connect.data.Timestamp": return new java.util.Date(times());
            case "org.apache.kafka.connect.data.Decimal": return new BigDecimal(BigInteger.valueOf(random.nextLong() >> random.nextInt(64)), 2);
        }
        switch (schema.type()) {
            case INT8: return (byte) random.nextInt();
            case INT16: return (short) random.nextInt();
            case INT32: return random.nextInt() >> random.nextInt(32);
            case INT64: return random.nextInt(3) == 0 ? times() : random.nextLong() >> random.nextInt(64);
            case FLOAT32: return pick(1.5f, -0.0f, 1e10f, 3.4e38f, 0.1f, Float.NaN, 100f, 1.17e-38f, 16777216f);
            case FLOAT64: return pick(2.5, -1e300, 0.001, 1e7, 123456.789, Double.POSITIVE_INFINITY, 0.0, 127.9, -32769.5, 1e19, 9007199254740993.0);
            case BOOLEAN: return random.nextBoolean();
            case STRING: return text();
            case BYTES: return new byte[] {(byte) random.nextInt(), 2, 3};
            case ARRAY: return new ArrayList<>(Arrays.asList(random.nextInt(), null));
            case MAP: return new LinkedHashMap<>(Map.of("k", 1.25));
            default:
                Struct struct = new Struct(schema);
                for (Field field : schema.fields())
                    if (!(field.schema().isOptional() && random.nextInt(3) == 0)) struct.put(field, value(field.schema()));
                return struct;
        }
    }

    static String text() {
        return pick("", "abc", "12", "-129", "+5", "70000", "1.5", "1e3", "true", "TRUE", "NaN", " 7 ", "0x10", "é\"\\\n", "2024-02-29 10:11:12", "2023-2-29 1:2:3",
            "2024-02-29T10:11:12.123Z", "29 Feb 2024, 1:05 PM", "20240229", "99999999999999999999", "1582-10-10", "Thu 29.02.24 10:11:12 +0130", "60 2024 24:10 +05", "5f",
            "0001-01-01", "12345-06-07", "2024-02-29");
    }

    static long times() {
        return pick(0L, 1709201472123L, -1L, 86399999L, 1609459199999L, -62135596800000L, 253402300799999L, -12219292800001L, 1L + random.nextInt());
    }

    @SafeVarargs
    static <T> T pick(T... from) {
        return from[random.nextInt(from.length)];
    }

    // -- JSON

    static JsonNode encoded(SinkRecord record) throws Exception {
        ObjectNode made = mapper.createObjectNode();
        made.put("topic", record.topic());
        if (record.kafkaPartition() != null) made.put("partition", record.kafkaPartition());
        made.put("offset", record.kafkaOffset());
        if (record.timestamp() != null) made.put("timestamp", record.timestamp());
        made.set("key", envelope(record.keySchema(), record.key()));
        made.set("value", envelope(record.valueSchema(), record.value()));
        ArrayNode headers = made.putArray("headers");
        for (Header header : record.headers()) headers.addObject().put("key", header.key()).set("value", envelope(header.schema(), header.value()));
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
