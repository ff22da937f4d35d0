package oracle.streams;

public class StreamsException extends Exception {
  private final int code;

  public StreamsException(String message, int code) {
    super(message);
    this.code = code;
  }

  public int getErrorCode() {
    return code;
  }
}
