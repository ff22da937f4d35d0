import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.math.BigDecimal;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.Driver;
import java.sql.DriverManager;
import java.sql.DriverPropertyInfo;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Timestamp;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import javax.sql.rowset.serial.SerialBlob;
import javax.sql.rowset.serial.SerialClob;
import oracle.jdbc.OracleConnection;

/**
 * A JDBC driver for the stand-in of an Oracle server: {@code jdbc:standin:host:port}. It speaks lines
 * of JSON (tests/support/oracle/fronts/json_lines.py) and returns the values of Oracle's own driver.
 */
public final class StandInDriver implements Driver {
  private static final String PREFIX = "jdbc:standin:";
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final DateTimeFormatter ZONED =
      DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss.SSSSSSSSS xxx");

  static {
    try {
      DriverManager.registerDriver(new StandInDriver());
    } catch (SQLException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  @Override
  public boolean acceptsURL(String url) {
    return url != null && url.startsWith(PREFIX);
  }

  @Override
  public Connection connect(String url, Properties info) throws SQLException {
    if (!acceptsURL(url)) {
      return null;
    }
    String[] place = url.substring(PREFIX.length()).split(":");
    try {
      Link link = new Link(new Socket(place[0], Integer.parseInt(place[1])));
      Map<String, Object> login = new LinkedHashMap<>();
      login.put("login", info.getProperty("user"));
      login.put("password", info.getProperty("password"));
      link.ask(login);
      return link.connection();
    } catch (IOException e) {
      throw new SQLException("ORA-12541: Cannot connect. No listener", "66000", 12541, e);
    }
  }

  @Override
  public DriverPropertyInfo[] getPropertyInfo(String url, Properties info) {
    return new DriverPropertyInfo[0];
  }

  @Override
  public int getMajorVersion() {
    return 1;
  }

  @Override
  public int getMinorVersion() {
    return 0;
  }

  @Override
  public boolean jdbcCompliant() {
    return false;
  }

  @Override
  public java.util.logging.Logger getParentLogger() {
    return java.util.logging.Logger.getGlobal();
  }

  private static <T> T proxy(Class<T> kind, InvocationHandler handler) {
    InvocationHandler complete =
        (self, method, arguments) -> {
          switch (method.getName()) {
            case "hashCode":
              return System.identityHashCode(self);
            case "equals":
              return self == arguments[0];
            case "toString":
              return "stand-in " + kind.getSimpleName();
            default:
              return handler.invoke(self, method, arguments);
          }
        };
    return kind.cast(
        Proxy.newProxyInstance(StandInDriver.class.getClassLoader(), new Class<?>[] {kind}, complete));
  }

  /** What methods return that nobody has need of here. */
  private static Object nothing(Method method) {
    Class<?> kind = method.getReturnType();
    if (kind == boolean.class) {
      return false;
    }
    if (kind == int.class) {
      return 0;
    }
    if (kind == long.class) {
      return 0L;
    }
    if (kind == short.class) {
      return (short) 0;
    }
    return null;
  }

  private static final class Link {
    private final Socket socket;
    private final BufferedReader in;
    private final Writer out;
    private boolean closed;
    private boolean commits = true;
    private Connection self;

    Link(Socket socket) throws IOException {
      this.socket = socket;
      in = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
      out = new OutputStreamWriter(socket.getOutputStream(), StandardCharsets.UTF_8);
    }

    synchronized JsonNode ask(Map<String, Object> request) throws SQLException {
      try {
        out.write(JSON.writeValueAsString(request));
        out.write("\n");
        out.flush();
        String line = in.readLine();
        if (line == null) {
          throw new IOException("the server has gone");
        }
        JsonNode answer = JSON.readTree(line);
        if (answer.has("error")) {
          JsonNode error = answer.get("error");
          throw new SQLException(error.get("message").asText(), "72000", error.get("code").asInt());
        }
        return answer;
      } catch (IOException e) {
        closed = true;
        throw new SQLException("ORA-17002: I/O error: " + e.getMessage(), "08006", 17002, e);
      }
    }

    JsonNode execute(String sql, List<Object> binds) throws SQLException {
      Map<String, Object> request = new LinkedHashMap<>();
      request.put("sql", sql);
      request.put("binds", binds);
      JsonNode answer = ask(request);
      if (commits && answer.has("changed")) {
        ask(Map.of("sql", "commit", "binds", List.of()));
      }
      return answer;
    }

    Connection connection() {
      self =
          proxy(
              OracleConnection.class,
              (proxy, method, arguments) -> {
                switch (method.getName()) {
                  case "createStatement":
                    return new Command(this, null).proxyAs(Statement.class);
                  case "prepareStatement":
                    return new Command(this, (String) arguments[0]).proxyAs(PreparedStatement.class);
                  case "prepareCall":
                    return new Command(this, (String) arguments[0]).proxyAs(CallableStatement.class);
                  case "getMetaData":
                    return metadata();
                  case "close":
                    closed = true;
                    socket.close();
                    return null;
                  case "isClosed":
                    return closed;
                  case "isValid":
                    return !closed;
                  case "getAutoCommit":
                    return commits;
                  case "setAutoCommit":
                    commits = (Boolean) arguments[0];
                    return null;
                  case "commit":
                  case "rollback":
                    return ask(Map.of("sql", method.getName(), "binds", List.of())) == null ? null : null;
                  case "setSavepoint":
                    return proxy(Savepoint.class, (a, other, b) -> nothing(other));
                  case "unwrap":
                    throw new SQLException("This is no " + arguments[0] + ".");
                  default:
                    return nothing(method);
                }
              });
      return self;
    }

    DatabaseMetaData metadata() {
      return proxy(
          DatabaseMetaData.class,
          (proxy, method, arguments) -> {
            switch (method.getName()) {
              case "getDatabaseMajorVersion":
                return 19;
              case "getDatabaseProductVersion":
                return "Oracle Database 19c Enterprise Edition Release 19.0.0.0.0 - Production";
              case "getDatabaseProductName":
                return "Oracle";
              case "getSearchStringEscape":
                return "/";
              case "getIdentifierQuoteString":
                return "\"";
              case "getSQLKeywords":
                return "";
              case "getConnection":
                return self;
              case "getTables":
              case "getColumns":
              case "getPrimaryKeys":
              case "getIndexInfo":
              case "getCatalogs":
              case "getSchemas":
                Map<String, Object> request = new LinkedHashMap<>();
                request.put("metadata", method.getName());
                List<Object> given = new ArrayList<>();
                for (Object one : arguments == null ? new Object[0] : arguments) {
                  given.add(one instanceof Object[] ? Arrays.asList((Object[]) one) : one);
                }
                request.put("arguments", given);
                return new Rows(ask(request), null).proxied();
              default:
                return nothing(method);
            }
          });
    }
  }

  private static final class Command {
    private final Link link;
    private final String prepared;
    private final TreeMap<Integer, Object> binds = new TreeMap<>();
    private JsonNode answer;

    Command(Link link, String prepared) {
      this.link = link;
      this.prepared = prepared;
    }

    private boolean run(Object[] arguments) throws SQLException {
      String sql = arguments == null || arguments.length == 0 ? prepared : (String) arguments[0];
      answer = link.execute(sql, new ArrayList<>(binds.values()));
      return answer.has("columns");
    }

    <T> T proxyAs(Class<T> kind) {
      return proxy(
          kind,
          (self, method, arguments) -> {
            String name = method.getName();
            switch (name) {
              case "executeQuery":
                run(arguments);
                return new Rows(answer, self).proxied();
              case "execute":
                return run(arguments);
              case "executeUpdate":
                run(arguments);
                return answer.path("changed").asInt();
              case "getResultSet":
                return answer != null && answer.has("columns") ? new Rows(answer, self).proxied() : null;
              case "getConnection":
                return link.self;
              case "getUpdateCount":
                return -1;
              default:
                boolean sets = name.startsWith("set") && arguments != null && arguments.length > 1;
                if (sets && arguments[0] instanceof Integer) {
                  Object value = arguments[1];
                  binds.put((Integer) arguments[0], value == null ? null : value.toString());
                  return null;
                }
                return nothing(method);
            }
          });
    }
  }

  private static final class Rows {
    private final JsonNode columns;
    private final JsonNode rows;
    private final Object statement;
    private int row = -1;
    private boolean wasNull;

    Rows(JsonNode answer, Object statement) {
      columns = answer.get("columns");
      rows = answer.get("rows");
      this.statement = statement;
    }

    private int place(Object column) throws SQLException {
      if (column instanceof Integer) {
        return (Integer) column - 1;
      }
      for (int i = 0; i < columns.size(); i++) {
        if (columns.get(i).get(0).asText().equalsIgnoreCase((String) column)) {
          return i;
        }
      }
      throw new SQLException("ORA-17006: Invalid column name: " + column, "99999", 17006);
    }

    private String text(Object column) throws SQLException {
      JsonNode value = rows.get(row).get(place(column));
      wasNull = value == null || value.isNull();
      return wasNull ? null : value.asText();
    }

    private Object value(Object column) throws SQLException {
      String text = text(column);
      if (text == null) {
        return null;
      }
      switch (columns.get(place(column)).get(1).asText()) {
        case "NUMBER":
        case "FLOAT":
          return new BigDecimal(text);
        case "BINARY_FLOAT":
          return Float.valueOf(text.equals("inf") ? "Infinity" : text.equals("-inf") ? "-Infinity" : text.equals("nan") ? "NaN" : text);
        case "BINARY_DOUBLE":
          return Double.valueOf(text.equals("inf") ? "Infinity" : text.equals("-inf") ? "-Infinity" : text.equals("nan") ? "NaN" : text);
        case "DATE":
          return Timestamp.valueOf(text);
        case "TIMESTAMP":
          return new oracle.sql.TIMESTAMP(Timestamp.valueOf(text));
        case "TIMESTAMP WITH TIME ZONE":
          return zoned(OffsetDateTime.parse(text, ZONED));
        case "TIMESTAMP WITH LOCAL TIME ZONE":
          return local(OffsetDateTime.parse(text, ZONED));
        case "INTERVAL YEAR TO MONTH":
          return new oracle.sql.INTERVALYM(text);
        case "INTERVAL DAY TO SECOND":
          return new oracle.sql.INTERVALDS(text);
        case "CLOB":
        case "NCLOB":
          return new SerialClob(text.toCharArray());
        case "BLOB":
          return new SerialBlob(HexFormat.of().parseHex(text));
        case "RAW":
          return HexFormat.of().parseHex(text);
        default:
          return text;
      }
    }

    /** Thirteen bytes: a date and time in UTC, nanoseconds, and the zone's hours and minutes. */
    private static oracle.sql.TIMESTAMPTZ zoned(OffsetDateTime time) {
      byte[] bytes = Arrays.copyOf(atUtc(time), 13);
      int minutes = time.getOffset().getTotalSeconds() / 60;
      bytes[11] = (byte) (20 + minutes / 60);
      bytes[12] = (byte) (60 + minutes % 60);
      return new oracle.sql.TIMESTAMPTZ(bytes);
    }

    private static oracle.sql.TIMESTAMPLTZ local(OffsetDateTime time) {
      return new oracle.sql.TIMESTAMPLTZ(atUtc(time));
    }

    private static byte[] atUtc(OffsetDateTime time) {
      OffsetDateTime utc = time.withOffsetSameInstant(ZoneOffset.UTC);
      int nanos = utc.getNano();
      return new byte[] {
        (byte) (utc.getYear() / 100 + 100), (byte) (utc.getYear() % 100 + 100),
        (byte) utc.getMonthValue(), (byte) utc.getDayOfMonth(),
        (byte) (utc.getHour() + 1), (byte) (utc.getMinute() + 1), (byte) (utc.getSecond() + 1),
        (byte) (nanos >> 24), (byte) (nanos >> 16), (byte) (nanos >> 8), (byte) nanos
      };
    }

    ResultSet proxied() {
      return proxy(
          ResultSet.class,
          (self, method, arguments) -> {
            switch (method.getName()) {
              case "next":
                return ++row < rows.size();
              case "wasNull":
                return wasNull;
              case "getStatement":
                return statement;
              case "getString":
                return text(arguments[0]);
              case "getInt":
                return number(text(arguments[0])).intValue();
              case "getLong":
                return number(text(arguments[0])).longValue();
              case "getShort":
                return number(text(arguments[0])).shortValue();
              case "getBoolean":
                return number(text(arguments[0])).signum() != 0;
              case "getBigDecimal":
                String decimal = text(arguments[0]);
                return decimal == null ? null : new BigDecimal(decimal);
              case "getBytes":
                String hex = text(arguments[0]);
                return hex == null ? null : HexFormat.of().parseHex(hex);
              case "getTimestamp":
                String time = text(arguments[0]);
                if (time == null || arguments.length < 2) {
                  return time == null ? null : Timestamp.valueOf(time);
                }
                return Timestamp.from(Timestamp.valueOf(time).toLocalDateTime().toInstant(ZoneOffset.UTC));
              case "getObject":
                if (arguments.length > 1 && arguments[1] == OffsetDateTime.class) {
                  return OffsetDateTime.parse(text(arguments[0]), ZONED);
                }
                return value(arguments[0]);
              case "getClob":
              case "getBlob":
                return value(arguments[0]);
              case "getMetaData":
                return metadata();
              default:
                return nothing(method);
            }
          });
    }

    private static BigDecimal number(String text) {
      return text == null ? BigDecimal.ZERO : new BigDecimal(text);
    }

    private ResultSetMetaData metadata() {
      return proxy(
          ResultSetMetaData.class,
          (self, method, arguments) -> {
            switch (method.getName()) {
              case "getColumnCount":
                return columns.size();
              case "getColumnName":
              case "getColumnLabel":
                return columns.get((Integer) arguments[0] - 1).get(0).asText();
              case "getColumnTypeName":
                return columns.get((Integer) arguments[0] - 1).get(1).asText();
              default:
                return nothing(method);
            }
          });
    }
  }
}
