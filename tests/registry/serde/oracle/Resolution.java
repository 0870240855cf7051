// What Java Avro reads from records with another schema: reads JSON lines, writes JSON lines. Started by resolution.py.
//
// In:  [writer, reader, [body in hex, ...]]
// Out: [what was read, written again with the reader's schema, in hex | null where it could not be read, ...]
//      or null where Java does not take the schemas

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;

public class Resolution {
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] arguments) throws Exception {
    PrintStream out = new PrintStream(System.out, true, "UTF-8");
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      out.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
    }
  }

  private static ArrayNode answer(JsonNode asked) {
    Schema writer;
    Schema reader;
    try {
      writer = new Schema.Parser().parse(asked.get(0).asText());
      reader = new Schema.Parser().parse(asked.get(1).asText());
    } catch (RuntimeException error) {
      return null;
    }
    ArrayNode answer = JSON.createArrayNode();
    for (JsonNode body : asked.get(2)) {
      try {
        answer.add(again(writer, reader, HexFormat.of().parseHex(body.asText())));
      } catch (RuntimeException | IOException error) {
        answer.addNull();
      }
    }
    return answer;
  }

  private static String again(Schema writer, Schema reader, byte[] body) throws IOException {
    Object read = new GenericDatumReader<Object>(writer, reader, new InOrder()).read(null, DecoderFactory.get().binaryDecoder(body, null));
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(bytes, null);
    new GenericDatumWriter<Object>(reader).write(read, encoder);
    encoder.flush();
    return HexFormat.of().formatHex(bytes.toByteArray());
  }

  /** Keeps maps in the order they were written in. */
  private static final class InOrder extends GenericData {
    @Override
    public Object newMap(Object old, int size) {
      return new LinkedHashMap<Object, Object>();
    }
  }
}
