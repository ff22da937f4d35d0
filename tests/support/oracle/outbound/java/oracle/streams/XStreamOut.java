package oracle.streams;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.sql.SQLException;
import java.util.ArrayDeque;
import java.util.HexFormat;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import oracle.jdbc.OracleConnection;

/** Asks the stand-in's server, which listens at the port that its name ends with. */
public final class XStreamOut {
  public static final int DEFAULT_MODE = 0;
  public static final int EXECUTING = 1;
  public static final int FINISHED = 2;
  private static final Pattern NAME = Pattern.compile("OUT(\\d+)", Pattern.CASE_INSENSITIVE);

  private final Socket socket;
  private final BufferedReader in;
  private final Writer out;
  private final ArrayDeque<StandInLcr> waiting = new ArrayDeque<>();
  private ArrayDeque<ChunkColumnValue> chunks = new ArrayDeque<>();
  private byte[] low = new byte[0];
  private int status = FINISHED;

  private XStreamOut(Socket socket) throws IOException {
    this.socket = socket;
    in = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
    out = new OutputStreamWriter(socket.getOutputStream(), StandardCharsets.UTF_8);
  }

  public static XStreamOut attach(
      OracleConnection connection, String server, byte[] position, int batchInterval, int idleTimeout, int mode)
      throws StreamsException {
    Matcher name = NAME.matcher(server);
    if (connection == null || !name.matches()) {
      throw new StreamsException("ORA-26701: STREAMS process " + server + " does not exist", 26701);
    }
    try {
      XStreamOut made = new XStreamOut(new Socket("127.0.0.1", Integer.parseInt(name.group(1))));
      made.ask("attach " + connection.getUserName() + " " + HexFormat.of().formatHex(position));
      return made;
    } catch (IOException | SQLException error) {
      throw new StreamsException("ORA-03113: end-of-file on communication channel", 3113);
    }
  }

  public synchronized LCR receiveLCR(int mode) throws StreamsException {
    chunks = new ArrayDeque<>();
    if (waiting.isEmpty()) {
      String[] answer = ask("receive").split("\t", -1);
      low = HexFormat.of().parseHex(answer[0]);
      for (int place = 1; place < answer.length; place++) {
        waiting.add(StandInLcr.read(answer[place]));
      }
    }
    StandInLcr next = waiting.poll();
    status = next == null ? FINISHED : EXECUTING;
    if (next == null) {
      return null;
    }
    chunks = next.chunks();
    return next.record();
  }

  public synchronized ChunkColumnValue receiveChunk(int mode) throws StreamsException {
    ChunkColumnValue next = chunks.poll();
    if (next == null) {
      throw new StreamsException("ORA-26899: no chunk follows", 26899);
    }
    return next;
  }

  /** Hands over what there is, as one batch. */
  public void receiveLCRCallback(XStreamLCRCallbackHandler handler, int mode) throws StreamsException {
    for (LCR next = receiveLCR(mode); next != null; next = receiveLCR(mode)) {
      handler.processLCR(next);
      while (!chunks.isEmpty()) {
        handler.processChunk(receiveChunk(mode));
      }
    }
  }

  public int getBatchStatus() {
    return status;
  }

  public byte[] getFetchLowWatermark() {
    return low;
  }

  public void setProcessedLowWatermark(byte[] processed, byte[] written, int mode) throws StreamsException {
    ask("processed " + HexFormat.of().formatHex(processed));
  }

  public void detach(int mode) throws StreamsException {
    try {
      ask("detach");
    } finally {
      try {
        socket.close();
      } catch (IOException error) {
        throw lost(error);
      }
    }
  }

  private synchronized String ask(String request) throws StreamsException {
    try {
      out.write(request + "\n");
      out.flush();
      String answer = in.readLine();
      if (answer == null) {
        throw new IOException("the server has gone");
      }
      if (answer.startsWith("!")) {
        String[] parts = answer.substring(1).split(" ", 2);
        throw new StreamsException(parts[1], Integer.parseInt(parts[0]));
      }
      return answer;
    } catch (IOException error) {
      throw lost(error);
    }
  }

  private static StreamsException lost(IOException error) {
    return new StreamsException("ORA-03113: end-of-file on communication channel: " + error.getMessage(), 3113);
  }
}
