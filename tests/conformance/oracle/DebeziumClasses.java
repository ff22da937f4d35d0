import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.debezium.config.Configuration;
import io.debezium.connector.oracle.CommitScn;
import io.debezium.connector.oracle.OracleConnectorConfig;
import io.debezium.connector.oracle.Scn;
import io.debezium.connector.oracle.logminer.SqlUtils;
import io.debezium.connector.oracle.logminer.buffered.BufferedLogMinerQueryBuilder;
import io.debezium.connector.oracle.logminer.parser.LobWriteParser;
import io.debezium.connector.oracle.logminer.unbuffered.UnbufferedLogMinerQueryBuilder;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Calls classes of Debezium's Oracle connector. A line of the input is a call, a JSON array that begins with its name; a
 * line of the output is its result as JSON, or an object with the class of the exception that it has thrown.
 */
public class DebeziumClasses {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        BufferedWriter out = new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Object result;
            try {
                result = call(JSON.readTree(line));
            }
            catch (Exception e) {
                result = Map.of("exception", e.getClass().getSimpleName());
            }
            out.write(JSON.writeValueAsString(result));
            out.write("\n");
        }
        out.flush();
        System.exit(0);
    }

    private static Object call(JsonNode call) throws Exception {
        switch (call.get(0).asText()) {
            case "buffered query":
                return new BufferedLogMinerQueryBuilder(config(call.get(1))).getQuery();
            case "unbuffered query":
                return new UnbufferedLogMinerQueryBuilder(config(call.get(1))).getQuery();
            case "minable logs":
                return SqlUtils.allMinableLogsQuery(
                        Scn.valueOf(call.get(1).asText()), Duration.ofHours(call.get(2).asLong()), call.get(3).asBoolean(),
                        texts(call.get(4)));
            case "oldest scn":
                return SqlUtils.oldestFirstChangeQuery(Duration.ofHours(call.get(1).asLong()), texts(call.get(2)));
            case "deleted logs":
                return SqlUtils.deletedArchiveLogsQuery(Scn.valueOf(call.get(1).asText()), texts(call.get(2)));
            case "scn before":
                return SqlUtils.getScnByTimeDeltaQuery(Scn.valueOf(call.get(1).asText()), Duration.ofMillis(call.get(2).asLong()));
            case "commit scn":
                return commitScn(call);
            case "lob write":
                LobWriteParser.LobWrite write = LobWriteParser.parse(call.get(1).asText());
                return write == null ? null : new Object[]{ write.offset(), write.length(), write.data() };
            default:
                throw new IllegalArgumentException(call.get(0).asText());
        }
    }

    /** The stored text, what it says of threads, and for each question (thread, number, transaction) its answer. */
    private static Object commitScn(JsonNode call) {
        CommitScn found = CommitScn.valueOf(call.get(1).asText());
        List<Boolean> handled = new ArrayList<>();
        for (JsonNode one : call.get(2)) {
            handled.add(found.hasBeenHandled(one.get(0).asInt(), Scn.valueOf(one.get(1).asText()), one.get(2).asText()));
        }
        Map<String, Object> stored = found.store(new LinkedHashMap<>());
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("stored", stored.get("commit_scn"));
        result.put("max", found.getMaxCommittedScn().toString());
        result.put("handled", handled);
        return result;
    }

    private static OracleConnectorConfig config(JsonNode options) {
        Configuration.Builder builder = Configuration.create()
                .with("topic.prefix", "t")
                .with("database.hostname", "h")
                .with("database.port", 1521)
                .with("database.user", "u")
                .with("database.password", "p")
                .with("database.dbname", "D");
        options.fields().forEachRemaining(one -> builder.with(one.getKey(), one.getValue().asText()));
        return new OracleConnectorConfig(builder.build());
    }

    private static List<String> texts(JsonNode array) {
        List<String> found = new ArrayList<>();
        array.forEach(one -> found.add(one.asText()));
        return found;
    }
}
