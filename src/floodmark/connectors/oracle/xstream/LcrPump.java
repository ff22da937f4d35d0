package floodmark;

import java.math.BigInteger;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;
import oracle.jdbc.OracleConnection;
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
import oracle.streams.ChunkColumnValue;
import oracle.streams.ColumnValue;
import oracle.streams.DDLLCR;
import oracle.streams.LCR;
import oracle.streams.RowLCR;
import oracle.streams.StreamsException;
import oracle.streams.XStreamOut;
import oracle.streams.XStreamUtility;

/**
 * Receives the records of an XStream outbound server in a thread of its own, and hands them over as lines of JSON, of
 * which there may be many in one call.
 *
 * <p>One thread makes all calls of the server's interface: what is told to it while another call is under way may block
 * for ever. The values of columns are written as OpenLogReplicator writes them, in texts: times in nanoseconds since the
 * epoch, with {@code ,<zone>} behind if they have one, and bytes in hexadecimal digits.
 */
public final class LcrPump implements Runnable {
  private static final int BATCH_S = 1;
  private static final int IDLE_S = 1;
  private static final int MOST_CHARACTERS = 16 << 20;
  private static final int ZERO_TIME = 60;
  private static final long ZERO_INTERVAL = 1L << 31;
  private static final BigInteger BILLION = BigInteger.valueOf(1_000_000_000L);
  private static final Map<String, String> CHANGES =
      Map.of(RowLCR.INSERT, "c", RowLCR.UPDATE, "u", RowLCR.DELETE, "d", RowLCR.COMMIT, "commit");

  private final OracleConnection connection;
  private final Object lock = new Object();
  private XStreamOut out;
  private StringBuilder lines = new StringBuilder();
  private byte[] processed;
  private byte[] idle;
  private Throwable failure;
  private boolean stopping;
  private Thread thread;

  private LcrPump(OracleConnection connection) {
    this.connection = connection;
  }

  /** Connects with the address and the account that the environment names. */
  public static LcrPump connect() throws SQLException {
    Properties login = new Properties();
    login.setProperty("user", System.getenv("FLOODMARK_XSTREAM_USER"));
    login.setProperty("password", System.getenv("FLOODMARK_XSTREAM_PASSWORD"));
    String url = System.getenv("FLOODMARK_XSTREAM_URL");
    OracleConnection found = (OracleConnection) DriverManager.getConnection(url, login);
    found.setSessionTimeZone("UTC");
    return new LcrPump(found);
  }

  /** Attaches behind a position, or behind what was committed up to a number if that is null. */
  public void attach(String server, byte[] position, String scn) throws SQLException, StreamsException {
    byte[] begin = position;
    if (begin == null) {
      begin = XStreamUtility.convertSCNToPosition(new NUMBER(scn, 0), XStreamUtility.POS_VERSION_V2);
    }
    out = XStreamOut.attach(connection, server, begin, BATCH_S, IDLE_S, XStreamOut.DEFAULT_MODE);
    thread = new Thread(this, "lcr-pump");
    thread.setDaemon(true);
    thread.start();
  }

  /** Returns the lines that have come, after waiting for the first one if there is none. */
  public byte[] receive(long millis) throws Throwable {
    long end = System.nanoTime() + millis * 1_000_000;
    synchronized (lock) {
      while (lines.length() == 0 && failure == null) {
        long left = (end - System.nanoTime()) / 1_000_000;
        if (left <= 0) {
          break;
        }
        lock.wait(left);
      }
      if (lines.length() == 0 && failure != null) {
        throw failure;
      }
      StringBuilder found = lines;
      lines = new StringBuilder();
      lock.notifyAll();
      return found.toString().getBytes(StandardCharsets.UTF_8);
    }
  }

  /** Lets the server forget what comes up to a position, between two calls of the other thread. */
  public void processed(byte[] position) {
    synchronized (lock) {
      processed = position;
    }
  }

  /** Ends the thread, which detaches, and the connection. */
  public void detach(long millis) throws InterruptedException, SQLException {
    synchronized (lock) {
      stopping = true;
      lock.notifyAll();
    }
    if (thread != null) {
      thread.join(millis);
    }
    connection.close();
  }

  @Override
  public void run() {
    try {
      while (!isStopping()) {
        acknowledge();
        LCR found = out.receiveLCR(XStreamOut.DEFAULT_MODE);
        if (found != null) {
          put(line(found));
        } else {
          rest(out.getFetchLowWatermark());
        }
      }
      acknowledge();
    } catch (Throwable error) {
      synchronized (lock) {
        failure = error;
        lock.notifyAll();
      }
    } finally {
      try {
        out.detach(XStreamOut.DEFAULT_MODE);
      } catch (StreamsException | RuntimeException error) {
        // The connection ends all the same.
        synchronized (lock) {
          failure = failure == null ? error : failure;
        }
      }
    }
  }

  private boolean isStopping() {
    synchronized (lock) {
      return stopping;
    }
  }

  private void acknowledge() throws StreamsException {
    byte[] position;
    synchronized (lock) {
      position = processed;
      processed = null;
    }
    if (position != null) {
      out.setProcessedLowWatermark(position, position, XStreamOut.DEFAULT_MODE);
    }
  }

  private void put(String line) throws InterruptedException {
    synchronized (lock) {
      while (lines.length() >= MOST_CHARACTERS && !stopping) {
        lock.wait();
      }
      lines.append(line).append('\n');
      lock.notifyAll();
    }
  }

  private void rest(byte[] position) throws SQLException, StreamsException, InterruptedException {
    if (position != null && position.length > 0 && !java.util.Arrays.equals(position, idle)) {
      idle = position;
      put(head("idle", position).append('}').toString());
    }
  }

  private String line(LCR found) throws SQLException, StreamsException {
    String command = found.getCommandType();
    String kind = found instanceof DDLLCR ? "ddl" : CHANGES.getOrDefault(command, "other");
    StringBuilder line = head(kind, found.getPosition());
    text(line.append(",\"xid\":"), found.getTransactionId());
    text(line.append(",\"db\":"), found.getSourceDatabaseName());
    text(line.append(",\"owner\":"), found.getObjectOwner());
    text(line.append(",\"table\":"), found.getObjectName());
    line.append(",\"tm\":").append(time(found.getSourceTime().getBytes()).toEpochSecond(ZoneOffset.UTC));
    if (found instanceof DDLLCR) {
      text(line.append(",\"text\":"), ((DDLLCR) found).getDDLText());
    } else if (kind.equals("other")) {
      text(line.append(",\"text\":"), command);
      chunks((RowLCR) found);
    } else {
      RowLCR row = (RowLCR) found;
      Object place = row.getAttribute("ROW_ID");
      text(line.append(",\"rid\":"), place == null ? "" : place instanceof Datum ? ((Datum) place).stringValue() : place.toString());
      text(line.append(",\"text\":"), row(row));
    }
    return line.append('}').toString();
  }

  private static StringBuilder head(String kind, byte[] position) throws SQLException, StreamsException {
    return new StringBuilder("{\"op\":\"")
        .append(kind)
        .append("\",\"position\":\"")
        .append(HexFormat.of().formatHex(position))
        .append("\",\"scn\":")
        .append(XStreamUtility.getSCNFromPosition(position).bigIntegerValue())
        .append(",\"commit_scn\":")
        .append(XStreamUtility.getCommitSCNFromPosition(position).bigIntegerValue());
  }

  private String row(RowLCR row) throws SQLException, StreamsException {
    Map<String, StringBuilder> large = chunks(row);
    StringBuilder entry = new StringBuilder("{\"before\":{");
    values(entry, row.getOldValues(), Map.of());
    entry.append("},\"after\":{");
    boolean first = values(entry, row.getNewValues(), large);
    StringBuilder names = new StringBuilder();
    for (Map.Entry<String, StringBuilder> one : large.entrySet()) {
      text(first ? entry : entry.append(','), one.getKey());
      text(entry.append(':'), one.getValue() == null ? null : one.getValue().toString());
      text(names.length() == 0 ? names : names.append(','), one.getKey());
      first = false;
    }
    return entry.append("},\"chunks\":[").append(names).append("]}").toString();
  }

  private boolean values(StringBuilder entry, ColumnValue[] values, Map<String, StringBuilder> large)
      throws SQLException {
    boolean first = true;
    for (ColumnValue one : values == null ? new ColumnValue[0] : values) {
      String name = one.getColumnName();
      // What a table for archiving rows has hidden.
      if (name.equals("ORA_ARCHIVE_STATE") || large.containsKey(name)) {
        continue;
      }
      text(first ? entry : entry.append(','), name);
      value(entry.append(':'), one.getColumnData());
      first = false;
    }
    return first;
  }

  /** Receives the values that come apart from a row; null: the value is null. */
  private Map<String, StringBuilder> chunks(RowLCR row) throws SQLException, StreamsException {
    Map<String, StringBuilder> found = new LinkedHashMap<>();
    if (!row.hasChunkData()) {
      return found;
    }
    ChunkColumnValue chunk;
    do {
      chunk = out.receiveChunk(XStreamOut.DEFAULT_MODE);
      boolean isBinary = chunk.getChunkType() == ChunkColumnValue.BLOB || chunk.getChunkType() == ChunkColumnValue.RAW;
      String piece = chunk.getColumnData() == null ? "" : content(chunk, isBinary);
      StringBuilder known = found.get(chunk.getColumnName());
      boolean isKnown = !piece.isEmpty() || chunk.isEmptyChunk();
      if (known == null && isKnown) {
        known = new StringBuilder();
      }
      found.put(chunk.getColumnName(), known == null ? null : known.append(piece));
    } while (!chunk.isEndOfRow());
    return found;
  }

  private static String content(ChunkColumnValue chunk, boolean isBinary) throws SQLException {
    Datum data = chunk.getColumnData();
    if (isBinary) {
      return HexFormat.of().formatHex(data.getBytes());
    }
    if (chunk.getChunkType() != ChunkColumnValue.XMLTYPE) {
      return data.stringValue();
    }
    return new String(data.getBytes(), charset(chunk.getCharSetId()));
  }

  private static Charset charset(int number) {
    switch (number) {
      case CharacterSet.AL16UTF16_CHARSET:
        return StandardCharsets.UTF_16BE;
      case CharacterSet.AL16UTF16LE_CHARSET:
        return StandardCharsets.UTF_16LE;
      case CharacterSet.AL32UTF8_CHARSET:
        return StandardCharsets.UTF_8;
      default:
        return Charset.forName(CharacterSet.make(number).toString());
    }
  }

  private void value(StringBuilder line, Datum data) throws SQLException {
    if (data == null) {
      line.append("null");
    } else if (data instanceof CHAR) {
      text(line, ((CHAR) data).stringValue());
    } else if (data instanceof NUMBER) {
      text(line, ((NUMBER) data).stringValue());
    } else if (data instanceof DATE || data instanceof TIMESTAMP) {
      text(line, nanos(time(data.getBytes()).toInstant(ZoneOffset.UTC)));
    } else if (data instanceof TIMESTAMPTZ) {
      OffsetDateTime time = ((TIMESTAMPTZ) data).offsetDateTimeValue(connection);
      String zone = time.getOffset() == ZoneOffset.UTC ? "+00:00" : time.getOffset().getId();
      text(line, nanos(time.toInstant()) + "," + zone);
    } else if (data instanceof TIMESTAMPLTZ) {
      text(line, nanos(((TIMESTAMPLTZ) data).offsetDateTimeValue(connection).toInstant()));
    } else if (data instanceof BINARY_FLOAT) {
      text(line, Float.toString(((BINARY_FLOAT) data).floatValue()));
    } else if (data instanceof BINARY_DOUBLE) {
      text(line, Double.toString(((BINARY_DOUBLE) data).doubleValue()));
    } else if (data instanceof RAW) {
      text(line, HexFormat.of().formatHex(data.getBytes()));
    } else if (data instanceof INTERVALYM) {
      text(line, months(data.getBytes()));
    } else if (data instanceof INTERVALDS) {
      text(line, days(data.getBytes()));
    } else {
      // An object, where others have texts: the table's decoding says so, and other tables go on.
      text(line.append("{\"type\":"), data.getClass().getName());
      line.append('}');
    }
  }

  /** A DATE, or a TIMESTAMP with nanoseconds behind it, as Oracle's documentation of DUMP describes them. */
  private static LocalDateTime time(byte[] raw) {
    int year = ((raw[0] & 255) - 100) * 100 + (raw[1] & 255) - 100;
    int nanos = raw.length < 11 ? 0 : (int) number(raw, 7);
    return LocalDateTime.of(year, raw[2], raw[3], raw[4] - 1, raw[5] - 1, raw[6] - 1, nanos);
  }

  private static String nanos(Instant time) {
    BigInteger seconds = BigInteger.valueOf(time.getEpochSecond());
    return seconds.multiply(BILLION).add(BigInteger.valueOf(time.getNano())).toString();
  }

  private static String months(byte[] raw) {
    long years = number(raw, 0) - ZERO_INTERVAL;
    int months = (raw[4] & 255) - ZERO_TIME;
    return (years < 0 || months < 0 ? "-" : "") + Math.abs(years) + "-" + Math.abs(months);
  }

  private static String days(byte[] raw) {
    long days = number(raw, 0) - ZERO_INTERVAL;
    long nanos = number(raw, 7) - ZERO_INTERVAL;
    int[] parts = new int[3];
    boolean isNegative = days < 0 || nanos < 0;
    for (int place = 0; place < parts.length; place++) {
      parts[place] = (raw[4 + place] & 255) - ZERO_TIME;
      isNegative |= parts[place] < 0;
    }
    String time =
        String.format("%02d:%02d:%02d.%09d", Math.abs(parts[0]), Math.abs(parts[1]), Math.abs(parts[2]), Math.abs(nanos));
    return (isNegative ? "-" : "") + Math.abs(days) + " " + time;
  }

  private static long number(byte[] raw, int place) {
    return ((raw[place] & 255L) << 24) | ((raw[place + 1] & 255L) << 16) | ((raw[place + 2] & 255L) << 8) | (raw[place + 3] & 255L);
  }

  private static void text(StringBuilder line, String text) {
    if (text == null) {
      line.append("null");
      return;
    }
    line.append('"');
    for (int place = 0; place < text.length(); place++) {
      char one = text.charAt(place);
      if (one == '"' || one == '\\') {
        line.append('\\').append(one);
      } else if (one < ' ' || Character.isSurrogate(one) || one == '\u2028' || one == '\u2029') {
        line.append(String.format("\\u%04x", (int) one));
      } else {
        line.append(one);
      }
    }
    line.append('"');
  }
}
