import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.debezium.config.Configuration;
import io.debezium.connector.oracle.CommitScn;
import io.debezium.connector.oracle.OracleConnectorConfig;
import io.debezium.connector.oracle.OracleConnection;
import io.debezium.connector.oracle.OracleDefaultValueConverter;
import io.debezium.connector.oracle.OracleValueConverters;
import io.debezium.connector.oracle.Scn;
import io.debezium.connector.oracle.antlr.OracleDdlParser;
import io.debezium.connector.oracle.logminer.LogFile;
import io.debezium.connector.oracle.logminer.LogFileCollector;
import io.debezium.connector.oracle.logminer.SqlUtils;
import io.debezium.connector.oracle.logminer.buffered.BufferedLogMinerQueryBuilder;
import io.debezium.connector.oracle.logminer.events.LogMinerEventRow;
import io.debezium.connector.oracle.logminer.parser.ExtendedStringParser;
import io.debezium.connector.oracle.logminer.parser.LobWriteParser;
import io.debezium.connector.oracle.logminer.parser.LogMinerDmlEntry;
import io.debezium.connector.oracle.logminer.parser.SelectLobParser;
import io.debezium.connector.oracle.logminer.parser.XmlBeginParser;
import io.debezium.connector.oracle.logminer.parser.XmlWriteParser;
import io.debezium.connector.oracle.logminer.unbuffered.UnbufferedLogMinerQueryBuilder;
import io.debezium.jdbc.JdbcConfiguration;
import io.debezium.relational.Column;
import io.debezium.relational.ColumnEditor;
import io.debezium.relational.Table;
import io.debezium.relational.TableEditor;
import io.debezium.relational.TableId;
import io.debezium.relational.Tables;
import io.debezium.relational.ddl.DdlChanges;
import io.debezium.relational.ddl.DdlParserListener;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.lang.reflect.Field;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import oracle.sql.CharacterSet;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.json.JsonConverter;

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
            case "logs of destinations":
                Map<String, List<LogFile>> byName = new LinkedHashMap<>();
                call.get(1).fields().forEachRemaining(one -> byName.put(one.getKey(), logs(one.getValue())));
                return names(LogFileCollector.mergeLogsByPrecedence(byName, texts(call.get(2))));
            case "select lob":
                SelectLobParser select = new SelectLobParser();
                LogMinerDmlEntry entry = select.parse(call.get(1).asText(), table(call.get(2)));
                return new Object[]{ select.getColumnName(), select.isBinary(), entry.getNewValues() };
            case "lob write":
                LobWriteParser.LobWrite write = LobWriteParser.parse(call.get(1).asText());
                return write == null ? null : new Object[]{ write.offset(), write.length(), write.data() };
            case "xml begin":
                XmlBeginParser.XmlBegin begin = new XmlBeginParser().parse(row(call.get(1), call.get(2)), table(call.get(3)));
                return new Object[]{ begin.columnName(), begin.parsedEvent().getNewValues() };
            case "xml write":
                return XmlWriteParser.parse(
                        row(call.get(1), call.get(2)), CharacterSet.make(CharacterSet.AL32UTF8_CHARSET)).data();
            case "long string":
                ExtendedStringParser string = new ExtendedStringParser();
                LogMinerDmlEntry named = string.parse(call.get(1).asText(), table(call.get(2)));
                return new Object[]{ string.getColumnName(), named.getNewValues() };
            case "default":
                return defaultValue(call);
            case "ddl":
                return statements(call.get(1));
            default:
                throw new IllegalArgumentException(call.get(0).asText());
        }
    }

    /** A row of the view with SQL_REDO and INFO. */
    private static LogMinerEventRow row(JsonNode statement, JsonNode info) throws Exception {
        LogMinerEventRow row = new LogMinerEventRow();
        set(row, "redoSql", statement.asText());
        set(row, "info", info.asText());
        return row;
    }

    private static void set(LogMinerEventRow row, String name, String value) throws Exception {
        Field field = LogMinerEventRow.class.getDeclaredField(name);
        field.setAccessible(true);
        field.set(row, value);
    }

    /** The default in the schema of a column: type, its number, length, scale, whether it is optional, text, options. */
    private static Object defaultValue(JsonNode call) {
        ColumnEditor editor = Column.editor().name("C").type(call.get(1).asText()).jdbcType(call.get(2).asInt())
                .optional(call.get(5).asBoolean());
        if (!call.get(3).isNull()) {
            editor.length(call.get(3).asInt());
        }
        if (!call.get(4).isNull()) {
            editor.scale(call.get(4).asInt());
        }
        Column column = editor.create();
        OracleValueConverters converters = new OracleValueConverters(config(call.get(7)), new NoConnection());
        SchemaBuilder schema = converters.schemaBuilder(column);
        if (column.isOptional()) {
            schema.optional();
        }
        new OracleDefaultValueConverter(converters, null).parseDefaultValue(column, call.get(6).asText())
                .ifPresent(schema::defaultValue);
        JsonConverter json = new JsonConverter();
        json.configure(Map.of("schemas.enable", "true", "converter.type", "value"));
        return json.asJsonSchema(schema.build()).get("default");
    }

    /** A connection to no database: its character sets are known. */
    private static class NoConnection extends OracleConnection {
        NoConnection() {
            super(JdbcConfiguration.adapt(Configuration.create().build()), config -> null, true);
        }

        @Override
        public CharacterSet getNationalCharacterSet() {
            return CharacterSet.make(CharacterSet.AL16UTF16_CHARSET);
        }

        @Override
        public CharacterSet getDatabaseCharacterSet() {
            return CharacterSet.make(CharacterSet.AL32UTF8_CHARSET);
        }
    }

    /** What each of some statements (owner and text) does: the exception, or the events and all tables afterwards. */
    private static List<Object> statements(JsonNode statements) {
        Tables tables = new Tables();
        List<Object> found = new ArrayList<>();
        for (JsonNode one : statements) {
            // A parser that has failed keeps the events of the statement.
            OracleDdlParser parser = new OracleDdlParser(true, false, true, null, Tables.TableFilter.includeAll());
            parser.setCurrentDatabase("D");
            parser.setCurrentSchema(one.get(0).asText());
            try {
                DdlChanges changes = parser.parse(one.get(1).asText(), tables);
                List<Object> events = new ArrayList<>();
                changes.getEventsByDatabase((name, all) -> all.forEach(event -> events.add(event(event))));
                Map<String, Object> described = new LinkedHashMap<>();
                tables.tableIds().forEach(id -> described.put(id.schema() + "." + id.table(), described(tables.forTable(id))));
                found.add(Map.of("events", events, "tables", described));
            }
            catch (RuntimeException e) {
                found.add(Map.of("exception", e.getClass().getSimpleName()));
            }
        }
        return found;
    }

    private static Object event(DdlParserListener.Event event) {
        TableId id = ((DdlParserListener.TableEvent) event).tableId();
        TableId previous = event instanceof DdlParserListener.TableAlteredEvent altered ? altered.previousTableId() : null;
        return new Object[]{ event.type().name(), id.schema() + "." + id.table(),
                previous == null ? null : previous.schema() + "." + previous.table() };
    }

    private static Object described(Table table) {
        List<Object> columns = new ArrayList<>();
        for (Column one : table.columns()) {
            Map<String, Object> found = new LinkedHashMap<>();
            found.put("name", one.name());
            found.put("typeName", one.typeName());
            found.put("jdbcType", one.jdbcType());
            found.put("length", one.length() == Column.UNSET_INT_VALUE ? null : one.length());
            found.put("scale", one.scale().orElse(null));
            found.put("position", one.position());
            found.put("optional", one.isOptional());
            found.put("comment", one.comment());
            found.put("defaultValueExpression", one.defaultValueExpression().orElse(null));
            columns.add(found);
        }
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("columns", columns);
        found.put("primaryKeyColumnNames", table.primaryKeyColumnNames());
        found.put("comment", table.comment());
        return found;
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

    private static List<LogFile> logs(JsonNode array) {
        List<LogFile> found = new ArrayList<>();
        for (JsonNode one : array) {
            String name = one.get(0).asText();
            int thread = one.get(1).asInt();
            BigInteger sequence = new BigInteger(one.get(2).asText());
            Scn first = Scn.valueOf(one.get(3).asText());
            Scn next = one.get(4).isNull() ? Scn.valueOf("18446744073709551615") : Scn.valueOf(one.get(4).asText());
            found.add(one.get(5).asBoolean()
                    ? LogFile.forArchive(name, first, next, sequence, thread, 1, false, false)
                    : LogFile.forRedo(name, first, next, sequence, one.get(4).isNull(), thread, 1));
        }
        return found;
    }

    private static List<String> names(List<LogFile> logs) {
        List<String> found = new ArrayList<>();
        logs.forEach(one -> found.add(one.getFileName()));
        return found;
    }

    private static Table table(JsonNode columns) {
        TableEditor editor = Table.editor().tableId(new TableId("D", "S", "T"));
        int place = 0;
        for (JsonNode one : columns) {
            editor.addColumn(Column.editor().name(one.asText()).type("VARCHAR2").jdbcType(12).position(++place)
                    .optional(true).create());
        }
        return editor.create();
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
