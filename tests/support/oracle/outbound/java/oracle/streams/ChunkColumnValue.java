package oracle.streams;

public interface ChunkColumnValue extends ColumnValue {
  int CLOB = 1;
  int BLOB = 2;
  int NCLOB = 3;
  int XMLTYPE = 4;
  int RAW = 5;

  int getChunkType();

  int getCharSetId();

  boolean isEmptyChunk();

  boolean isEndOfRow();
}
