// Writes what Debezium's TimescaleDb makes of change events, one JSON object a line. The database tidegate of a PostgreSQL at PORT has what timescale.sql makes:
//   java -cp '.servers/kafka/libs/*:.servers/debezium-postgres/plugins/debezium-postgres/*' tests/connectors/postgres/RecordTimescale.java PORT \
//     | grep '"config"' > tests/connectors/postgres/timescale.jsonl

import com.fasterxml.jackson.databind.*;
import com.fasterxml.jackson.databind.node.*;
import io.debezium.connector.postgresql.transforms.timescaledb.TimescaleDb;
import java.util.*;
import org.apache.kafka.connect.data.*;
import org.apache.kafka.connect.header.*;
import org.apache.kafka.connect.source.SourceRecord;

public class RecordTimescale {
    static final ObjectMapper mapper = new ObjectMapper();
    static final Schema WHERE = SchemaBuilder.struct().name("io.debezium.connector.postgresql.Source").field("schema", Schema.OPTIONAL_STRING_SCHEMA).field("table", Schema.OPTIONAL_STRING_SCHEMA).build();

    public static void main(String[] arguments) throws Exception {
        List<Map<String, String>> configs = List.of(Map.of(), Map.of("schema.list", "other"), Map.of("schema.list", ""), Map.of("schema.list", "other,_timescaledb_internal", "target.topic.prefix", "shop"));
        for (Map<String, String> config : configs)
            for (String schema : new String[] {"public", "_timescaledb_internal", "other", null})
                for (String table : new String[] {"_hyper_1_1_chunk", "_hyper_1_2_chunk", "_hyper_2_3_chunk", "_hyper_9_9_chunk", "conditions", null})
                    record(config, arguments[0], schema, table, "s.t.Envelope");
        record(Map.of(), arguments[0], "_timescaledb_internal", "_hyper_1_1_chunk", "s.t.Value");
    }

    static void record(Map<String, String> config, String port, String schema, String table, String name) throws Exception {
        Map<String, String> whole = new HashMap<>(config);
        whole.putAll(Map.of("database.hostname", "127.0.0.1", "database.port", port, "database.user", "tidegate", "database.password", "x", "database.dbname", "tidegate"));
        Schema envelope = SchemaBuilder.struct().name(name).field("source", WHERE).field("op", Schema.STRING_SCHEMA).build();
        Struct value = new Struct(envelope).put("op", "c").put("source", new Struct(WHERE).put("schema", schema).put("table", table));
        Headers headers = new ConnectHeaders().addString("h", "v");
        TimescaleDb<SourceRecord> transformation = new TimescaleDb<>();
        transformation.configure(whole);
        SourceRecord made = transformation.apply(new SourceRecord(Map.of(), Map.of(), "s." + schema + "." + table, null, null, null, envelope, value, 1L, headers));
        transformation.close();
        ObjectNode line = mapper.createObjectNode().put("schema", schema).put("table", table).put("name", name).put("topic", made.topic());
        line.set("config", mapper.valueToTree(config));
        Struct where = ((Struct) made.value()).getStruct("source");
        line.putArray("source").add(where.getString("schema")).add(where.getString("table"));
        ObjectNode told = line.putObject("headers");
        for (Header header : made.headers()) told.put(header.key(), (String) header.value());
        System.out.println(line);
    }
}
