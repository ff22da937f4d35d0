import com.fasterxml.jackson.databind.ObjectMapper;
import io.debezium.config.Configuration;
import io.debezium.connector.oracle.OracleConnectorConfig;
import io.debezium.connector.oracle.logminer.parser.DmlParserException;
import io.debezium.connector.oracle.logminer.parser.LogMinerDmlEntry;
import io.debezium.connector.oracle.logminer.parser.LogMinerDmlParser;
import io.debezium.relational.Column;
import io.debezium.relational.Table;
import io.debezium.relational.TableEditor;
import io.debezium.relational.TableId;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * Parses statements of SQL_REDO with Debezium's parser.
 *
 * Arguments: how often all are parsed, and the names of the table's columns. A line of the input is a statement as a
 * JSON string, a line of the output is null if the statement isn't parsed, else the values before and after. If they are
 * parsed several times, the output is only the CPU seconds of each time.
 */
public class RedoParser {
    public static void main(String[] arguments) throws Exception {
        Configuration configuration = Configuration.create()
                .with("topic.prefix", "t")
                .with("database.hostname", "h")
                .with("database.port", 1521)
                .with("database.user", "u")
                .with("database.password", "p")
                .with("database.dbname", "D")
                .build();
        LogMinerDmlParser parser = new LogMinerDmlParser(new OracleConnectorConfig(configuration));
        TableEditor editor = Table.editor().tableId(new TableId("D", "S", "T"));
        for (int place = 1; place < arguments.length; place++) {
            editor.addColumn(Column.editor().name(arguments[place]).type("VARCHAR2").jdbcType(12).position(place)
                    .optional(true).create());
        }
        Table table = editor.create();
        ObjectMapper mapper = new ObjectMapper();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        BufferedWriter out = new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8));
        int times = Integer.parseInt(arguments[0]);
        List<String> kept = new ArrayList<>();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String statement = mapper.readValue(line, String.class);
            if (times > 1) {
                kept.add(statement);
                continue;
            }
            try {
                LogMinerDmlEntry entry = parser.parse(statement, table);
                out.write(mapper.writeValueAsString(new Object[][]{ entry.getOldValues(), entry.getNewValues() }));
            }
            catch (DmlParserException e) {
                out.write("null");
            }
            out.newLine();
        }
        for (int time = 0; times > 1 && time < times; time++) {
            long begin = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
            int values = 0;
            for (String statement : kept) {
                values += parser.parse(statement, table).getNewValues().length;
            }
            long end = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
            out.write((end - begin) / 1e9 + (values < 0 ? "!" : ""));
            out.newLine();
        }
        out.flush();
    }
}
