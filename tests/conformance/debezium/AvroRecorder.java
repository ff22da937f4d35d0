import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.confluent.connect.avro.AvroConverter;
import io.confluent.connect.avro.AvroData;
import io.confluent.connect.avro.AvroDataConfig;
import io.confluent.kafka.schemaregistry.client.MockSchemaRegistryClient;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.json.JsonConverter;

/**
 * Writes with Confluent's AvroConverter what JsonConverter has written with its schema.
 *
 * <p>Each line of standard input is a JSON object: {@code settings} of the converter, and {@code
 * event}, the text of a key or a value. The line for it on standard output has the Avro {@code
 * schema}, as text, and the {@code bytes} in base64, which begin with five of the wire format; or an
 * {@code error}.
 */
public final class AvroRecorder {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private AvroRecorder() {}

  public static void main(String[] args) throws Exception {
    PrintStream output = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    BufferedReader input =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      JsonNode asked = MAPPER.readTree(line);
      ObjectNode told = MAPPER.createObjectNode();
      try {
        record(asked, told);
      } catch (Exception error) {
        Throwable cause = error;
        while (cause.getCause() != null) {
          cause = cause.getCause();
        }
        told.removeAll();
        told.put("error", cause.toString());
      }
      output.println(MAPPER.writeValueAsString(told));
    }
  }

  private static void record(JsonNode asked, ObjectNode told) {
    Map<String, Object> settings = new HashMap<>();
    settings.put("schema.registry.url", "http://nowhere");
    Iterator<Map.Entry<String, JsonNode>> given = asked.get("settings").fields();
    while (given.hasNext()) {
      Map.Entry<String, JsonNode> one = given.next();
      settings.put(one.getKey(), one.getValue().asText());
    }
    JsonConverter json = new JsonConverter();
    json.configure(Map.of("schemas.enable", "true", "replace.null.with.default", "false"), false);
    byte[] text = asked.get("event").asText().getBytes(StandardCharsets.UTF_8);
    SchemaAndValue event = json.toConnectData("topic", text);
    AvroData data = new AvroData(new AvroDataConfig(settings));
    told.put("schema", data.fromConnectSchema(event.schema()).toString());
    AvroConverter avro = new AvroConverter(new MockSchemaRegistryClient());
    avro.configure(settings, false);
    byte[] bytes = avro.fromConnectData("topic", event.schema(), event.value());
    told.put("bytes", bytes == null ? null : Base64.getEncoder().encodeToString(bytes));
  }
}
