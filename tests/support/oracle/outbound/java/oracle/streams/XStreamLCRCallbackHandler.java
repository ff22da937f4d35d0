package oracle.streams;

public interface XStreamLCRCallbackHandler {
  void processLCR(LCR lcr) throws StreamsException;

  void processChunk(ChunkColumnValue chunk) throws StreamsException;

  LCR createLCR() throws StreamsException;

  ChunkColumnValue createChunk() throws StreamsException;
}
