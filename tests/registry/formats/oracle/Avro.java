// What Java Avro says of schemas: reads JSON lines, writes JSON lines. Started by avro.py beside this file.
//
// In:  [text, ...]
// Out: {"schemas": [canonical text | null, ...], "pairs": [[reader, writer, [[type, location, message], ...] | "exception"], ...]}

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.avro.NameValidator;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;

public class Avro {
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] arguments) throws Exception {
    PrintStream out = new PrintStream(System.out, true, "UTF-8");
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      out.println(answer(JSON.readTree(line)));
    }
  }

  private static ObjectNode answer(JsonNode texts) {
    ObjectNode answer = JSON.createObjectNode();
    ArrayNode schemas = answer.putArray("schemas");
    List<Schema> parsed = new ArrayList<>();
    for (JsonNode text : texts) {
      try {
        parsed.add(new Schema.Parser(NameValidator.STRICT_VALIDATOR).parse(text.asText()));
        schemas.add(parsed.get(parsed.size() - 1).toString());
      } catch (RuntimeException error) {
        parsed.add(null);
        schemas.addNull();
      }
    }
    ArrayNode pairs = answer.putArray("pairs");
    for (int reader = 0; reader < parsed.size(); reader++) {
      for (int writer = 0; writer < parsed.size(); writer++) {
        if (reader != writer && parsed.get(reader) != null && parsed.get(writer) != null) {
          ArrayNode pair = pairs.addArray().add(reader).add(writer);
          try {
            ArrayNode reasons = JSON.createArrayNode();
            for (SchemaCompatibility.Incompatibility reason : SchemaCompatibility
                .checkReaderWriterCompatibility(parsed.get(reader), parsed.get(writer)).getResult().getIncompatibilities()) {
              reasons.addArray().add(reason.getType().name()).add(reason.getLocation()).add(reason.getMessage());
            }
            pair.add(reasons);
          } catch (RuntimeException error) {
            pair.add("exception");
          }
        }
      }
    }
    return answer;
  }
}
