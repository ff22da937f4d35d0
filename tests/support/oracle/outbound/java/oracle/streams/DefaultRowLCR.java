package oracle.streams;

import oracle.sql.DATE;

/** A row's record that is made of its parts, as Debezium makes one of a statement that empties a table. */
public class DefaultRowLCR implements RowLCR {
  private final String database;
  private final String command;
  private final String owner;
  private final String name;
  private final String transaction;
  private final byte[] tag;
  private final byte[] position;
  private final DATE time;

  public DefaultRowLCR(
      String database, String command, String owner, String name, String transaction, byte[] tag, byte[] position, DATE time) {
    this.database = database;
    this.command = command;
    this.owner = owner;
    this.name = name;
    this.transaction = transaction;
    this.tag = tag;
    this.position = position;
    this.time = time;
  }

  @Override
  public String getSourceDatabaseName() {
    return database;
  }

  @Override
  public String getObjectOwner() {
    return owner;
  }

  @Override
  public String getObjectName() {
    return name;
  }

  @Override
  public String getCommandType() {
    return command;
  }

  @Override
  public String getTransactionId() {
    return transaction;
  }

  @Override
  public byte[] getTag() {
    return tag;
  }

  @Override
  public byte[] getPosition() {
    return position;
  }

  @Override
  public DATE getSourceTime() {
    return time;
  }

  @Override
  public Object getAttribute(Object key) {
    return null;
  }

  @Override
  public ColumnValue[] getOldValues() {
    return null;
  }

  @Override
  public ColumnValue[] getNewValues() {
    return null;
  }

  @Override
  public boolean hasChunkData() {
    return false;
  }
}
