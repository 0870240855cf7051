// Writes what Kafka Connect's own converters make of random values and texts, one JSON object a line:
//   java -Duser.timezone=UTC -cp '.servers/kafka/libs/*' tests/connect/converters/RecordConverters.java \
//     | gzip -9n > tests/connect/converters/recorded.jsonl.gz

import com.fasterxml.jackson.databind.*;
import com.fasterxml.jackson.databind.node.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.kafka.connect.converters.*;
import org.apache.kafka.connect.data.*;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.storage.*;

public class RecordConverters {
    static final Random random = new Random(26);
    static final ObjectMapper mapper = new ObjectMapper();
    static final JsonConverter plain = new JsonConverter();

    public static void main(String[] arguments) throws Exception {
        plain.configure(Map.of("replace.null.with.default", "false"), false);
        for (int n = 0; n < 1500; n++) parse(text());
        for (String odd : new String[] {"", " ", "null", "NULL", "[]", "{}", "[1,2.5,3]", "[1,null]", "[null]", "{\"a\":null}", "{1:2,3:400}", "[\"a\",1]", "{\"a\":[1]}",
            "\"quoted\"", "\\:", "[", "{\"a\"", "[1,]", "[,1]", "{,}", "true}", " true ", "[true, false]", "2024-13-45", "25:61:00.000Z", "[2024-01-01]", "+1", "-", "1e3",
            "0x10", "1.", ".5", "-.5", "+.5", "٣", "1_0", "[[1],[2]]", "[[1],[\"a\"]]", "{\"a\":1,\"a\":2}", "9223372036854775808", "1e19", "1e20", "3.5e38", "1e309", "-0",
            "1.0", "100.00", "1e-400", "\"a\":1", "{a:b}", "a,b", "a\\,b", "[a]", "[\"2024-01-01\"]", "{\"k\":\"12:13:14.567Z\"}", "12:13:14.567Z", "12\\:13\\:14.567Z"})
            parse(odd);
        for (int n = 0; n < 300; n++) write();
        for (String odd : new String[] {"{\"schema\":null,\"payload\":5}", "{\"payload\":5}", "[]", "5", "{", "", "null", "{\"schema\":{\"type\":\"int8\"},\"payload\":300}",
            "{\"schema\":{\"type\":\"int32\"},\"payload\":\"x\"}", "{\"schema\":{\"type\":\"string\"},\"payload\":5}", "{\"schema\":{\"type\":\"boolean\"},\"payload\":1}",
            "{\"schema\":{\"type\":\"string\",\"optional\":true},\"payload\":null}", "{\"schema\":{\"type\":\"string\"},\"payload\":null}",
            "{\"schema\":{\"type\":\"double\"},\"payload\":1}", "{\"schema\":{\"type\":\"int64\"},\"payload\":1.7}", "{\"schema\":{\"type\":\"nope\"},\"payload\":1}",
            "{\"schema\":{\"type\":\"array\"},\"payload\":[]}", "{\"schema\":{\"type\":\"array\",\"items\":{\"type\":\"int32\"}},\"payload\":[1,null]}",
            "{\"schema\":{\"type\":\"array\",\"items\":{\"type\":\"int32\",\"optional\":true}},\"payload\":[1,null]}",
            "{\"schema\":{\"type\":\"map\",\"keys\":{\"type\":\"int32\"},\"values\":{\"type\":\"string\"}},\"payload\":[[1,\"a\"],[2,\"b\"]]}",
            "{\"schema\":{\"type\":\"map\",\"keys\":{\"type\":\"string\"},\"values\":{\"type\":\"string\"}},\"payload\":[[1,\"a\"]]}",
            "{\"schema\":{\"type\":\"struct\",\"fields\":[{\"field\":\"a\",\"type\":\"int32\",\"optional\":true}]},\"payload\":{}}",
            "{\"schema\":{\"type\":\"struct\",\"fields\":[{\"field\":\"a\",\"type\":\"int32\",\"default\":7}]},\"payload\":{\"b\":1}}",
            "{\"schema\":{\"type\":\"struct\",\"fields\":[{\"type\":\"int32\"}]},\"payload\":{}}", "{\"schema\":{\"type\":\"struct\"},\"payload\":{}}",
            "{\"schema\":{\"type\":\"int64\",\"name\":\"org.apache.kafka.connect.data.Timestamp\",\"version\":1},\"payload\":\"x\"}",
            "{\"schema\":{\"type\":\"bytes\",\"name\":\"org.apache.kafka.connect.data.Decimal\",\"version\":1,\"parameters\":{\"scale\":\"2\"}},\"payload\":1.25}",
            "{\"schema\":{\"type\":\"bytes\",\"name\":\"org.apache.kafka.connect.data.Decimal\",\"version\":1,\"parameters\":{\"scale\":\"2\"}},\"payload\":\"AfQ=\"}",
            "{\"schema\":{\"type\":\"bytes\"},\"payload\":\"AfQ=\"}", "{\"schema\":{\"type\":\"bytes\"},\"payload\":\"***\"}", "{\"schema\":5,\"payload\":5,\"x\":1}"})
            read(odd);
        Converter[] numbers = {new ShortConverter(), new IntegerConverter(), new LongConverter(), new FloatConverter(), new DoubleConverter(), new BooleanConverter()};
        for (Converter one : numbers) {
            one.configure(Map.of(), false);
            for (int n = 0; n < 25; n++) number(one);
        }
        for (int n = 0; n < 600; n++) string();
    }

    /** StringConverter on a value, with dates as java.util.Date (most connectors) and as java.sql's classes (the JDBC source). */
    static void string() throws Exception {
        Schema schema = schema(0);
        Object value = value(schema);
        if (value == null || hasBytes(schema)) return; // the text of a byte array is another in each process
        for (boolean sql : new boolean[] {false, true}) {
            ObjectNode line = mapper.createObjectNode().put("kind", "string").put("sql", sql);
            line.set("given", mapper.readTree(plain.fromConnectData("t", schema, value)));
            StringConverter converter = new StringConverter();
            converter.configure(Map.of(), false);
            byte[] written = converter.fromConnectData("t", schema, sql ? withSqlTimes(schema, value) : value);
            System.out.println(line.put("written", new String(written, StandardCharsets.UTF_8)));
        }
    }

    static boolean hasBytes(Schema schema) {
        return switch (schema.type()) {
            case BYTES -> schema.name() == null || !schema.name().equals(Decimal.LOGICAL_NAME);
            case ARRAY -> hasBytes(schema.valueSchema());
            case MAP -> hasBytes(schema.valueSchema());
            case STRUCT -> schema.fields().stream().anyMatch(field -> hasBytes(field.schema()));
            default -> false;
        };
    }

    static Object withSqlTimes(Schema schema, Object value) {
        if (value == null) return null;
        if (schema.name() != null) switch (schema.name()) {
            case "org.apache.kafka.connect.data.Date": return new java.sql.Date(((java.util.Date) value).getTime());
            case "org.apache.kafka.connect.data.Time": return new java.sql.Time(((java.util.Date) value).getTime());
            case "org.apache.kafka.connect.data.Timestamp": return new java.sql.Timestamp(((java.util.Date) value).getTime());
        }
        switch (schema.type()) {
            case ARRAY: return ((List<?>) value).stream().map(item -> withSqlTimes(schema.valueSchema(), item)).collect(java.util.stream.Collectors.toList());
            case MAP:
                Map<Object, Object> map = new LinkedHashMap<>();
                ((Map<?, ?>) value).forEach((key, item) -> map.put(key, withSqlTimes(schema.valueSchema(), item)));
                return map;
            case STRUCT:
                Struct struct = new Struct(schema);
                for (Field field : schema.fields()) struct.put(field, withSqlTimes(field.schema(), ((Struct) value).getWithoutDefault(field.name())));
                return struct;
            default: return value;
        }
    }

    static void parse(String text) throws Exception {
        ObjectNode line = mapper.createObjectNode().put("kind", "parse").put("text", text);
        SchemaAndValue found = new SimpleHeaderConverter().toConnectHeader("t", "h", text.getBytes(StandardCharsets.UTF_8));
        if (found == null) found = SchemaAndValue.NULL; // as a record takes it
        line.put("schema", shape(found.schema()));
        byte[] again = new SimpleHeaderConverter().fromConnectHeader("t", "h", found.schema(), found.value());
        line.put("written", again == null ? null : new String(again, StandardCharsets.UTF_8));
        System.out.println(line);
    }

    static String shape(Schema schema) {
        if (schema == null) return "none";
        String name = schema.name() == null ? "" : schema.name().substring(schema.name().lastIndexOf('.') + 1);
        return switch (schema.type()) {
            case ARRAY -> "[" + shape(schema.valueSchema()) + "]";
            case MAP -> "{" + shape(schema.keySchema()) + ":" + shape(schema.valueSchema()) + "}";
            default -> schema.type().getName() + name;
        };
    }

    static void write() throws Exception {
        Map<String, String> config = new LinkedHashMap<>();
        if (random.nextBoolean()) config.put("schemas.enable", "false");
        if (random.nextBoolean()) config.put("decimal.format", "numeric");
        if (random.nextBoolean()) config.put("replace.null.with.default", "false");
        Schema schema = schema(0);
        Object value = value(schema);
        ObjectNode line = mapper.createObjectNode().put("kind", "json");
        line.set("config", mapper.valueToTree(config));
        try (JsonConverter converter = new JsonConverter()) {
            converter.configure(config, false);
            line.set("given", mapper.readTree(plain.fromConnectData("t", schema, value)));
            line.put("written", new String(converter.fromConnectData("t", schema, value), StandardCharsets.UTF_8));
        }
        System.out.println(line);
    }

    static void read(String text) throws Exception {
        for (boolean schemas : new boolean[] {true, false}) {
            ObjectNode line = mapper.createObjectNode().put("kind", "read").put("text", text).put("schemas", schemas);
            try (JsonConverter converter = new JsonConverter()) {
                converter.configure(Map.of("schemas.enable", String.valueOf(schemas)), false);
                SchemaAndValue found = converter.toConnectData("t", text.getBytes(StandardCharsets.UTF_8));
                byte[] again = plain.fromConnectData("t", found.schema(), found.value());
                line.set("made", again == null ? mapper.nullNode() : mapper.readTree(again));
            } catch (RuntimeException error) {
                line.put("error", error.getMessage());
            }
            System.out.println(line);
        }
    }

    static void number(Converter converter) throws Exception {
        Schema schema = finish(builder(random.nextInt(8)));
        Object value = random.nextInt(6) == 0 ? null : value(schema);
        ObjectNode line = mapper.createObjectNode().put("kind", "number").put("converter", converter.getClass().getSimpleName());
        line.set("given", mapper.readTree(plain.fromConnectData("t", schema.isOptional() || value != null ? schema : SchemaBuilder.string().optional().build(), value)));
        try {
            byte[] bytes = converter.fromConnectData("t", schema, value);
            line.put("written", bytes == null ? null : HexFormat.of().formatHex(bytes));
        } catch (RuntimeException error) {
            line.put("error", error.getMessage());
        }
        System.out.println(line);
    }

    static Schema schema(int depth) {
        int kind = random.nextInt(depth > 2 ? 13 : 18);
        SchemaBuilder builder;
        if (kind < 13) builder = builder(kind);
        else if (kind == 13) builder = SchemaBuilder.array(schema(depth + 1));
        else if (kind == 14) builder = SchemaBuilder.map(random.nextBoolean() ? Schema.STRING_SCHEMA : Schema.INT32_SCHEMA, schema(depth + 1));
        else {
            builder = SchemaBuilder.struct();
            for (String name : new String[] {"a", "b\"", "ü", "d"}) if (random.nextInt(4) > 0) builder.field(name, schema(depth + 1));
        }
        return finish(builder);
    }

    static SchemaBuilder builder(int kind) {
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
            default -> Decimal.builder(3);
        };
    }

    static Schema finish(SchemaBuilder builder) {
        if (random.nextBoolean()) builder.optional();
        if (builder.name() == null && random.nextInt(6) == 0) builder.name("a.Named").version(3).doc("why").parameter("p", "q");
        if (builder.type() != Schema.Type.STRUCT && random.nextInt(5) == 0) builder.defaultValue(value(builder.build()));
        return builder.build();
    }

    static Object value(Schema schema) {
        if (schema.isOptional() && random.nextInt(4) == 0) return null;
        if (schema.name() != null) switch (schema.name()) {
            case "org.apache.kafka.connect.data.Date": return new java.util.Date((random.nextInt(60000) - 20000) * 86400000L);
            case "org.apache.kafka.connect.data.Time": return new java.util.Date(random.nextInt(86400000));
            case "org.apache.kafka.connect.data.Timestamp": return new java.util.Date(random.nextInt() * 1000L + 7);
            case "org.apache.kafka.connect.data.Decimal": return new java.math.BigDecimal(java.math.BigInteger.valueOf(random.nextLong() >> random.nextInt(64)), 3);
        }
        switch (schema.type()) {
            case INT8: return (byte) random.nextInt();
            case INT16: return (short) random.nextInt();
            case INT32: return random.nextInt() >> random.nextInt(32);
            case INT64: return random.nextLong() >> random.nextInt(64);
            case FLOAT32: return pick(1.5f, -0.0f, 1e10f, 0.1f, Float.NaN, 100f, Float.intBitsToFloat(random.nextInt()));
            case FLOAT64: return pick(2.5, -1e300, 0.001, 1e7, 123456.789, Double.POSITIVE_INFINITY, 0.0, Double.longBitsToDouble(random.nextLong()));
            case BOOLEAN: return random.nextBoolean();
            case STRING: return pick("", "abc", "é\"\\\n\t\u0001\u007f\u2028😀/", "x".repeat(random.nextInt(20)));
            case BYTES: return new byte[random.nextInt(5)];
            case ARRAY: return new ArrayList<>(Arrays.asList(value(schema.valueSchema()), value(schema.valueSchema())));
            case MAP:
                Map<Object, Object> map = new LinkedHashMap<>();
                map.put(value(schema.keySchema()), value(schema.valueSchema()));
                return map;
            default:
                Struct struct = new Struct(schema);
                for (Field field : schema.fields()) struct.put(field, value(field.schema()));
                return struct;
        }
    }

    static String text() {
        StringBuilder made = new StringBuilder();
        String[] parts = {"1", "-7", "300", "2.5", "true", "null", "\"a\"", "\"b c\"", "[", "]", "{", "}", ",", ":", " ", "x", "\\", "2024-02-29", "10:11:12.123Z", "\"2024-02-29\"",
            "1e5", "70000", "5000000000", "\"k\":1", "[1,2]", "{\"a\":1}", "e", "+", "\"\"", "é"};
        if (random.nextBoolean()) {
            boolean map = random.nextBoolean();
            made.append(map ? "{" : "[");
            for (int n = random.nextInt(4); n > 0; n--) {
                if (map) made.append(parts[random.nextInt(8)]).append(":");
                made.append(parts[random.nextInt(parts.length)]).append(n > 1 ? "," : "");
            }
            return made.append(map ? "}" : "]").toString();
        }
        for (int n = 1 + random.nextInt(6); n > 0; n--) made.append(parts[random.nextInt(parts.length)]);
        return made.toString();
    }

    @SafeVarargs
    static <T> T pick(T... from) {
        return from[random.nextInt(from.length)];
    }
}
