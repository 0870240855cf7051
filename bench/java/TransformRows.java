// What a chain of Kafka Connect's own transformations makes of rows a second and thread, after warming up:
//   java -cp '.servers/kafka/libs/*' bench/java/TransformRows.java CHAIN ROWS

import java.util.*;
import org.apache.kafka.connect.data.*;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.transforms.*;
import org.apache.kafka.common.record.TimestampType;

public class TransformRows {
    public static void main(String[] arguments) {
        int rows = Integer.parseInt(arguments[1]);
        List<Transformation<SinkRecord>> chain = chain(arguments[0]);
        Schema schema = SchemaBuilder.struct().name("Row").field("id", Schema.INT64_SCHEMA).field("name", Schema.OPTIONAL_STRING_SCHEMA).field("amount", Schema.FLOAT64_SCHEMA)
            .field("n", Schema.INT32_SCHEMA).field("flag", Schema.BOOLEAN_SCHEMA).field("at", Timestamp.SCHEMA).field("city", Schema.STRING_SCHEMA)
            .field("note", Schema.OPTIONAL_STRING_SCHEMA).field("k", Schema.INT64_SCHEMA).build();
        List<SinkRecord> records = new ArrayList<>();
        for (int n = 0; n < rows; n++) {
            Struct row = new Struct(schema).put("id", (long) n).put("name", "name" + n).put("amount", n * 1.25).put("n", n % 1000).put("flag", n % 2 == 0)
                .put("at", new java.util.Date(1700000000000L + n)).put("city", "Berlin").put("note", n % 3 == 0 ? "something" : null).put("k", n * 7L);
            records.add(new SinkRecord("rows", 0, null, null, schema, row, n, 1700000000000L + n, TimestampType.CREATE_TIME));
        }
        long best = Long.MAX_VALUE, seen = 0;
        for (int round = 0; round < 30; round++) {
            long began = System.nanoTime();
            for (SinkRecord record : records) {
                SinkRecord made = record;
                for (Transformation<SinkRecord> one : chain) made = one.apply(made);
                seen += made.topic().length();
            }
            best = Math.min(best, System.nanoTime() - began);
        }
        System.out.println(seen == 0 ? 0 : rows * 1e9 / best);
    }

    static List<Transformation<SinkRecord>> chain(String name) {
        List<Transformation<SinkRecord>> made = new ArrayList<>();
        if (name.equals("keys")) {
            made.add(configured(new ValueToKey<>(), Map.of("fields", "id")));
            made.add(configured(new ExtractField.Key<>(), Map.of("field", "id")));
            made.add(configured(new InsertField.Value<>(), Map.of("topic.field", "topic", "timestamp.field", "when")));
        } else {
            made.add(configured(new Cast.Value<>(), Map.of("spec", "n:int64,k:string,flag:int8")));
            made.add(configured(new TimestampConverter.Value<>(), Map.of("field", "at", "target.type", "string", "format", "yyyy-MM-dd HH:mm:ss")));
            made.add(configured(new ReplaceField.Value<>(), Map.of("exclude", "note", "renames", "city:town")));
        }
        return made;
    }

    static <T extends Transformation<SinkRecord>> T configured(T transformation, Map<String, String> config) {
        transformation.configure(config);
        return transformation;
    }
}
