package oracle.streams;

public interface RowLCR extends LCR {
  String INSERT = "INSERT";
  String UPDATE = "UPDATE";
  String DELETE = "DELETE";
  String COMMIT = "COMMIT";
  String LOB_ERASE = "LOB ERASE";
  String LOB_WRITE = "LOB WRITE";
  String LOB_TRIM = "LOB TRIM";

  ColumnValue[] getOldValues();

  ColumnValue[] getNewValues();

  boolean hasChunkData();
}
