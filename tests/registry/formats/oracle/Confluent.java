// What Confluent's own classes say of schemas: reads JSON lines, writes JSON lines. Started by confluent.py beside this file.
//
// In:  {"type": "JSON" | "PROTOBUF" | "AVRO", "texts": [...], "references": {name: text}, "pairs": [[original, update], ...]}
// Out: {"schemas": [{"canonical", "normalized"} | {"error"}], "pairs": [{"strict": [[type, path]...], "lenient": [...]}]}

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.confluent.kafka.schemaregistry.ParsedSchema;
import io.confluent.kafka.schemaregistry.avro.AvroSchema;
import io.confluent.kafka.schemaregistry.client.rest.entities.SchemaReference;
import io.confluent.kafka.schemaregistry.json.JsonSchema;
import io.confluent.kafka.schemaregistry.protobuf.ProtobufSchema;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

public class Confluent {
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] arguments) throws Exception {
    PrintStream out = new PrintStream(System.out, true, "UTF-8");
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      out.println(answer(JSON.readTree(line)));
    }
  }

  private static ObjectNode answer(JsonNode asked) {
    List<SchemaReference> references = new ArrayList<>();
    Map<String, String> resolved = new LinkedHashMap<>();
    if (asked.has("references")) {
      asked.get("references").fields().forEachRemaining(entry -> {
        references.add(new SchemaReference(entry.getKey(), entry.getKey(), 1));
        resolved.put(entry.getKey(), entry.getValue().asText());
      });
    }
    ObjectNode answer = JSON.createObjectNode();
    ArrayNode schemas = answer.putArray("schemas");
    List<ParsedSchema> parsed = new ArrayList<>();
    for (JsonNode text : asked.get("texts")) {
      ObjectNode said = schemas.addObject();
      try {
        ParsedSchema schema;
        switch (asked.get("type").asText()) {
          case "JSON":
            schema = new JsonSchema(text.asText(), references, resolved, null);
            break;
          case "PROTOBUF":
            schema = new ProtobufSchema(text.asText(), references, resolved, null, null);
            break;
          default:
            schema = new AvroSchema(text.asText(), references, resolved, null, true);
        }
        schema.validate(false);
        said.put("canonical", schema.canonicalString());
        said.put("normalized", schema.normalize().canonicalString());
        parsed.add(schema);
      } catch (Throwable error) {
        said.removeAll();
        Throwable cause = error;
        while (cause.getCause() != null) {
          cause = cause.getCause();
        }
        said.put("error", String.valueOf(cause.getMessage()));
        parsed.add(null);
      }
    }
    ArrayNode pairs = answer.putArray("pairs");
    for (JsonNode pair : asked.get("pairs")) {
      ParsedSchema original = parsed.get(pair.get(0).asInt());
      ParsedSchema update = parsed.get(pair.get(1).asInt());
      ObjectNode said = pairs.addObject();
      if (original == null || update == null) {
        continue;
      }
      try {
        if (original instanceof JsonSchema) {
          json(said.putArray("strict"), (JsonSchema) original, (JsonSchema) update,
              io.confluent.kafka.schemaregistry.json.diff.SchemaDiff.COMPATIBLE_CHANGES_STRICT);
          json(said.putArray("lenient"), (JsonSchema) original, (JsonSchema) update,
              io.confluent.kafka.schemaregistry.json.diff.SchemaDiff.COMPATIBLE_CHANGES_LENIENT);
        } else if (original instanceof AvroSchema) {
          said.putArray("strict");
        } else {
          ArrayNode changes = said.putArray("strict");
          for (io.confluent.kafka.schemaregistry.protobuf.diff.Difference change :
              io.confluent.kafka.schemaregistry.protobuf.diff.SchemaDiff.compare(
                  (ProtobufSchema) original, (ProtobufSchema) update)) {
            changes.addArray().add(change.getType().name()).add(change.getFullPath());
          }
        }
        ArrayNode messages = said.putArray("messages");
        update.isBackwardCompatible(original).forEach(messages::add);
      } catch (Throwable error) {
        said.removeAll();
        said.put("error", String.valueOf(error));
      }
    }
    return answer;
  }

  private static void json(
      ArrayNode changes, JsonSchema original, JsonSchema update,
      java.util.Set<io.confluent.kafka.schemaregistry.json.diff.Difference.Type> compatible) {
    for (io.confluent.kafka.schemaregistry.json.diff.Difference change :
        io.confluent.kafka.schemaregistry.json.diff.SchemaDiff.compare(
            compatible, original.rawSchema(), update.rawSchema())) {
      changes.addArray().add(change.getType().name()).add(change.getJsonPath());
    }
  }
}
