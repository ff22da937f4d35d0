import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.Driver;
import java.sql.DriverManager;
import java.sql.DriverPropertyInfo;
import java.sql.SQLException;
import java.util.Collections;
import java.util.Properties;
import java.util.logging.Logger;
import oracle.jdbc.OracleConnection;
import oracle.jdbc.OracleDriver;

/** Stands in for Oracle's OCI driver; its connections know who has logged in, and nothing else. */
public final class OciDriver implements Driver {
  static {
    try {
      // Oracle's own would be asked for what this one refuses.
      new OracleDriver();
      for (Driver other : Collections.list(DriverManager.getDrivers())) {
        if (other instanceof OracleDriver) {
          DriverManager.deregisterDriver(other);
        }
      }
      DriverManager.registerDriver(new OciDriver());
    } catch (SQLException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  @Override
  public boolean acceptsURL(String url) {
    return url.startsWith("jdbc:oracle:oci:@");
  }

  @Override
  public Connection connect(String url, Properties info) throws SQLException {
    if (!acceptsURL(url)) {
      return null;
    }
    if (!"dbz".equals(info.getProperty("password"))) {
      throw new SQLException("ORA-01017: invalid credential or not authorized; logon denied", "72000", 1017);
    }
    return (Connection)
        Proxy.newProxyInstance(
            OciDriver.class.getClassLoader(),
            new Class<?>[] {OracleConnection.class},
            (self, method, arguments) -> {
              if (method.getName().equals("getUserName")) {
                return info.getProperty("user");
              }
              return method.getReturnType() == boolean.class ? false : null;
            });
  }

  @Override
  public DriverPropertyInfo[] getPropertyInfo(String url, Properties info) {
    return new DriverPropertyInfo[0];
  }

  @Override
  public int getMajorVersion() {
    return 1;
  }

  @Override
  public int getMinorVersion() {
    return 0;
  }

  @Override
  public boolean jdbcCompliant() {
    return false;
  }

  @Override
  public Logger getParentLogger() {
    return Logger.getGlobal();
  }
}
