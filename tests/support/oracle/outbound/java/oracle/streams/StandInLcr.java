package oracle.streams;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Timestamp;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import oracle.sql.BINARY_DOUBLE;
import oracle.sql.BINARY_FLOAT;
import oracle.sql.CHAR;
import oracle.sql.CharacterSet;
import oracle.sql.DATE;
import oracle.sql.Datum;
import oracle.sql.INTERVALDS;
import oracle.sql.INTERVALYM;
import oracle.sql.NUMBER;
import oracle.sql.RAW;
import oracle.sql.TIMESTAMP;
import oracle.sql.TIMESTAMPLTZ;
import oracle.sql.TIMESTAMPTZ;

/** A record as the stand-in's server describes it, in JSON. */
final class StandInLcr {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final DateTimeFormatter ZONED = DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss.SSSSSSSSS xxx");
  private static final CharacterSet UTF8 = CharacterSet.make(CharacterSet.AL32UTF8_CHARSET);
  private static final Map<String, Integer> CHUNKS =
      Map.of(
          "CLOB", ChunkColumnValue.CLOB, "NCLOB", ChunkColumnValue.NCLOB, "BLOB", ChunkColumnValue.BLOB,
          "XMLTYPE", ChunkColumnValue.XMLTYPE, "RAW", ChunkColumnValue.RAW);

  private final JsonNode given;

  private StandInLcr(JsonNode given) {
    this.given = given;
  }

  static StandInLcr read(String text) throws StreamsException {
    try {
      return new StandInLcr(JSON.readTree(text));
    } catch (IOException error) {
      throw new StreamsException(error.getMessage(), 26899);
    }
  }

  LCR record() throws StreamsException {
    Map<String, Object> answers = new java.util.HashMap<>();
    answers.put("getSourceDatabaseName", text("database"));
    answers.put("getObjectOwner", text("owner"));
    answers.put("getObjectName", text("name"));
    answers.put("getCommandType", text("command"));
    answers.put("getTransactionId", text("transaction"));
    answers.put("getPosition", HexFormat.of().parseHex(text("position")));
    answers.put("getSourceTime", new DATE(DATE.toBytes(LocalDateTime.parse(text("time")))));
    answers.put("getDDLText", text("statement"));
    answers.put("hasChunkData", given.path("chunks").size() > 0);
    try {
      answers.put("getOldValues", values("old"));
      answers.put("getNewValues", values("new"));
    } catch (SQLException error) {
      throw new StreamsException(error.getMessage(), 26899);
    }
    String rowId = text("row_id");
    return given.has("statement") ? made(DDLLCR.class, answers, rowId) : made(RowLCR.class, answers, rowId);
  }

  ArrayDeque<ChunkColumnValue> chunks() throws StreamsException {
    ArrayDeque<ChunkColumnValue> found = new ArrayDeque<>();
    for (JsonNode one : given.path("chunks")) {
      Map<String, Object> answers = new java.util.HashMap<>();
      String type = one.get("type").asText();
      answers.put("getColumnName", one.get("name").asText());
      answers.put("getChunkType", CHUNKS.get(type));
      answers.put("getCharSetId", (int) CharacterSet.AL32UTF8_CHARSET);
      answers.put("isEmptyChunk", one.path("empty").asBoolean());
      answers.put("isEndOfRow", one.path("last").asBoolean());
      JsonNode data = one.get("data");
      String text = data.isNull() ? "" : data.asText();
      answers.put("getColumnData", type.equals("BLOB") || type.equals("RAW") ? new RAW(HexFormat.of().parseHex(text)) : characters(text));
      found.add(made(ChunkColumnValue.class, answers, null));
    }
    return found;
  }

  private String text(String name) {
    JsonNode found = given.get(name);
    return found == null || found.isNull() ? null : found.asText();
  }

  private ColumnValue[] values(String side) throws SQLException {
    List<ColumnValue> found = new ArrayList<>();
    for (JsonNode one : given.path(side)) {
      Map<String, Object> answers = new java.util.HashMap<>();
      answers.put("getColumnName", one.get(0).asText());
      answers.put("getColumnData", datum(one.get(1).asText(), one.get(2)));
      found.add(made(ColumnValue.class, answers, null));
    }
    return found.toArray(new ColumnValue[0]);
  }

  private static <T> T made(Class<T> kind, Map<String, Object> answers, String rowId) {
    return kind.cast(
        Proxy.newProxyInstance(
            StandInLcr.class.getClassLoader(),
            new Class<?>[] {kind},
            (self, method, arguments) -> {
              if (method.getName().equals("getAttribute")) {
                return arguments[0].equals("ROW_ID") ? rowId : null;
              }
              return method.getName().equals("toString") ? answers.toString() : answers.get(method.getName());
            }));
  }

  private static CHAR characters(String text) {
    return new CHAR(text.getBytes(StandardCharsets.UTF_8), UTF8);
  }

  private static Datum datum(String type, JsonNode value) throws SQLException {
    if (value.isNull()) {
      return null;
    }
    String text = value.asText();
    switch (type) {
      case "NUMBER":
      case "FLOAT":
        return new NUMBER(new java.math.BigDecimal(text));
      case "BINARY_FLOAT":
        return new BINARY_FLOAT(Float.parseFloat(named(text)));
      case "BINARY_DOUBLE":
        return new BINARY_DOUBLE(Double.parseDouble(named(text)));
      case "DATE":
        return new DATE(DATE.toBytes(Timestamp.valueOf(text).toLocalDateTime()));
      case "TIMESTAMP":
        return new TIMESTAMP(Timestamp.valueOf(text));
      case "TIMESTAMP WITH TIME ZONE":
        return new TIMESTAMPTZ(TIMESTAMPTZ.toBytes(OffsetDateTime.parse(text, ZONED)));
      case "TIMESTAMP WITH LOCAL TIME ZONE":
        return new LocalTime(OffsetDateTime.parse(text, ZONED));
      case "INTERVAL YEAR TO MONTH":
        return new INTERVALYM(text);
      case "INTERVAL DAY TO SECOND":
        return new INTERVALDS(text);
      case "RAW":
        return new RAW(HexFormat.of().parseHex(text));
      default:
        return characters(text);
    }
  }

  private static String named(String text) {
    return text.endsWith("inf") ? text.replace("inf", "Infinity") : text.equals("nan") ? "NaN" : text;
  }

  /** A local time: Oracle's own asks the connection for the database's zone, which no stand-in of a connection knows. */
  private static final class LocalTime extends TIMESTAMPLTZ {
    private final OffsetDateTime time;

    LocalTime(OffsetDateTime time) {
      super(new byte[11]);
      this.time = time.withOffsetSameInstant(ZoneOffset.UTC);
    }

    @Override
    public OffsetDateTime offsetDateTimeValue(Connection connection) {
      return time;
    }

    @Override
    public Timestamp timestampValue(Connection connection) {
      return Timestamp.from(time.toInstant());
    }
  }
}
