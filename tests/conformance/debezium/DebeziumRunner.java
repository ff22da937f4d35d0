import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.Header;
import io.debezium.engine.format.Avro;
import io.debezium.engine.format.CloudEvents;
import io.debezium.engine.format.Json;
import io.debezium.engine.format.KeyValueChangeEventFormat;
import io.debezium.engine.format.KeyValueHeaderChangeEventFormat;
import io.debezium.engine.format.SerializationFormat;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * Runs one Debezium connector and reports on standard output, a line each: {@code READY} when the
 * connector polls, {@code PROGRESS n m} after every batch, {@code DONE n m} when the wanted number of
 * records has come or standard input has ended, {@code FAILED message} if the connector gave up.
 *
 * <p>The only argument is a properties file; without it, connectors run one after the other: each line
 * of standard input that isn't empty names such a file, the next line ends the connector, and {@code
 * ENDED} says that it has ended.
 *
 * <p>The file has the connector's options, and of its own {@code
 * runner.output} (a file for one JSON object per record; without it records are only counted, and
 * headers not converted), {@code runner.max.records} (stop after so many), {@code
 * runner.timestamps} (add the time of receipt to each object) and {@code runner.leave.out} (records
 * whose value contains this text are counted, in m too, but not written).
 */
public final class DebeziumRunner {
  private static final PrintStream PROTOCOL = System.out;

  private static final BufferedReader INPUT =
      new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));

  private final long maxRecords;
  private final boolean timestamps;
  private final String leaveOut;
  private final BufferedWriter output;
  private final CountDownLatch finished = new CountDownLatch(1);
  private volatile long count;
  private volatile long leftOut;

  private DebeziumRunner(
      long maxRecords, boolean timestamps, String leaveOut, BufferedWriter output) {
    this.maxRecords = maxRecords;
    this.timestamps = timestamps;
    this.leaveOut = leaveOut;
    this.output = output;
  }

  public static void main(String[] args) throws Exception {
    if (args.length > 0) {
      runFile(args[0]).interrupt();
    } else {
      for (String file = INPUT.readLine(); file != null; file = INPUT.readLine()) {
        runFile(file).join();
        say("ENDED");
      }
    }
    System.exit(0);
  }

  /** Runs a connector, and returns the thread that waits for the end of the input. */
  private static Thread runFile(String path) throws Exception {
    Properties options = new Properties();
    try (Reader reader = Files.newBufferedReader(Path.of(path), StandardCharsets.UTF_8)) {
      options.load(reader);
    }
    String file = (String) options.remove("runner.output");
    String wanted = (String) options.remove("runner.max.records");
    String timestamps = (String) options.remove("runner.timestamps");
    String leaveOut = (String) options.remove("runner.leave.out");
    BufferedWriter output =
        file == null ? null : Files.newBufferedWriter(Path.of(file), StandardCharsets.UTF_8);
    return new DebeziumRunner(
            wanted == null ? Long.MAX_VALUE : Long.parseLong(wanted),
            Boolean.parseBoolean(timestamps),
            leaveOut,
            output)
        .run(options);
  }

  private Thread run(Properties options) throws Exception {
    DebeziumEngine.Builder<ChangeEvent<Object, Object>> builder =
        output == null
            ? DebeziumEngine.create(
                KeyValueChangeEventFormat.of(format("key", options), format("value", options)))
            : DebeziumEngine.create(
                KeyValueHeaderChangeEventFormat.of(
                    format("key", options), format("value", options), Json.class));
    DebeziumEngine<ChangeEvent<Object, Object>> engine =
        builder
            .using(options)
            .using(
                new DebeziumEngine.ConnectorCallback() {
                  @Override
                  public void pollingStarted() {
                    say("READY");
                  }
                })
            .using(
                (success, message, error) -> {
                  if (!success) {
                    if (error != null) {
                      error.printStackTrace();
                    }
                    say("FAILED " + String.valueOf(message).replaceAll("\\s+", " "));
                  }
                  finished.countDown();
                })
            .notifying(this::handle)
            .build();

    Thread engineThread = new Thread(engine, "engine");
    engineThread.setDaemon(true);
    engineThread.start();
    Thread stdin = new Thread(this::awaitEndOfInput, "stdin");
    stdin.setDaemon(true);
    stdin.start();

    finished.await();
    say("DONE " + Math.min(count, maxRecords) + " " + leftOut);
    try {
      engine.close();
    } catch (IllegalStateException alreadyStopped) {
      // The connector had given up on its own.
    }
    engineThread.join(TimeUnit.SECONDS.toMillis(30));
    if (output != null) {
      output.close();
    }
    return stdin;
  }

  /** Returns the format of keys or values; what it makes of them, a text or bytes, isn't typed here. */
  @SuppressWarnings("unchecked")
  private static Class<? extends SerializationFormat<Object>> format(
      String side, Properties options) {
    String converter = options.getProperty(side + ".converter", "");
    Class<?> format =
        switch (converter) {
          case "io.debezium.converters.CloudEventsConverter" -> CloudEvents.class;
          case "io.confluent.connect.avro.AvroConverter" -> Avro.class;
          default -> Json.class;
        };
    return (Class<? extends SerializationFormat<Object>>) format;
  }

  private void handle(
      List<ChangeEvent<Object, Object>> records,
      DebeziumEngine.RecordCommitter<ChangeEvent<Object, Object>> committer)
      throws InterruptedException {
    long seen = count;
    try {
      for (ChangeEvent<Object, Object> record : records) {
        if (leaveOut != null && record.value() != null && text(record.value()).contains(leaveOut)) {
          leftOut++;
        } else if (output != null && seen < maxRecords) {
          write(record);
        }
        seen++;
        committer.markProcessed(record);
      }
      if (output != null) {
        // Before the offset is stored: what a killed connector counts as delivered must be in the file.
        output.flush();
      }
      committer.markBatchFinished();
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
    count = seen;
    say("PROGRESS " + Math.min(seen, maxRecords) + " " + leftOut);
    if (seen >= maxRecords) {
      finished.countDown();
    }
  }

  private void write(ChangeEvent<Object, Object> record) throws IOException {
    StringBuilder line = new StringBuilder("{\"topic\":");
    quote(line, record.destination());
    quote(line.append(",\"key\":"), text(record.key()));
    quote(line.append(",\"value\":"), text(record.value()));
    line.append(",\"headers\":{");
    String separator = "";
    for (Header<Object> header : record.<Object>headers()) {
      quote(line.append(separator), header.getKey());
      Object value = header.getValue();
      quote(line.append(':'), value == null ? null : value.toString());
      separator = ",";
    }
    line.append('}');
    if (record.partition() != null) {
      line.append(",\"partition\":").append(record.partition());
    }
    if (timestamps) {
      line.append(",\"received_ms\":").append(System.currentTimeMillis());
    }
    output.append(line.append("}\n"));
  }

  /** Returns a key or a value; bytes are in base64. */
  private static String text(Object part) {
    return part instanceof byte[] bytes
        ? Base64.getEncoder().encodeToString(bytes)
        : (String) part;
  }

  private static void quote(StringBuilder out, String text) {
    if (text == null) {
      out.append("null");
      return;
    }
    out.append('"');
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == '"' || c == '\\') {
        out.append('\\').append(c);
      } else if (c < 0x20) {
        out.append(String.format("\\u%04x", (int) c));
      } else {
        out.append(c);
      }
    }
    out.append('"');
  }

  private void awaitEndOfInput() {
    try {
      INPUT.readLine();
    } catch (IOException closed) {
      // Treated like the end of the input.
    }
    finished.countDown();
  }

  private static synchronized void say(String line) {
    PROTOCOL.println(line);
    PROTOCOL.flush();
  }
}
