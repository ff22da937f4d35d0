package oracle.streams;

import oracle.sql.Datum;

public interface ColumnValue {
  String getColumnName();

  Datum getColumnData();
}
