package oracle.streams;

import oracle.sql.DATE;

public interface LCR {
  String getSourceDatabaseName();

  String getObjectOwner();

  String getObjectName();

  String getCommandType();

  String getTransactionId();

  byte[] getTag();

  byte[] getPosition();

  DATE getSourceTime();

  Object getAttribute(Object name);
}
