package oracle.streams;

import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.sql.SQLException;
import java.util.Arrays;
import oracle.sql.NUMBER;

/** Positions of the stand-in's: the commit's number, the transaction, the record's number and its place. */
public final class XStreamUtility {
  public static final int POS_VERSION_V1 = 1;
  public static final int POS_VERSION_V2 = 2;
  private static final int BYTES = 29;

  private XStreamUtility() {}

  public static byte[] convertSCNToPosition(NUMBER scn, int version) throws StreamsException, SQLException {
    if (version != POS_VERSION_V2) {
      throw new StreamsException("ORA-26901: no such version of positions", 26901);
    }
    byte[] position = new byte[BYTES];
    Arrays.fill(position, (byte) 0xff);
    ByteBuffer.wrap(position).putLong(scn.longValue());
    return position;
  }

  public static NUMBER getSCNFromPosition(byte[] position) throws StreamsException, SQLException {
    long found = ByteBuffer.wrap(position).getLong(16);
    return new NUMBER(found < 0 ? ByteBuffer.wrap(position).getLong() : found);
  }

  public static NUMBER getCommitSCNFromPosition(byte[] position) throws StreamsException, SQLException {
    return new NUMBER(BigInteger.valueOf(ByteBuffer.wrap(position).getLong()));
  }
}
