import java.sql.*;
import java.util.*;
public class Jdbc {
  interface Body { Object run() throws Exception; }
  static void step(String name, Body b) {
    try { System.out.println("OK  " + name + " " + b.run()); }
    catch (SQLException e) { System.out.println("ERR " + name + " " + e.getSQLState() + " " + e.getMessage().replace('\n', ' ')); }
    catch (Exception e) { System.out.println("EXC " + name + " " + e); }
  }
  static List<String> rows(ResultSet r) throws SQLException {
    List<String> out = new ArrayList<>();
    int n = r.getMetaData().getColumnCount();
    while (r.next()) { StringBuilder s = new StringBuilder(); for (int i = 1; i <= n; i++) s.append(i > 1 ? "|" : "").append(r.getString(i)); out.add(s.toString()); }
    return out.size() > 12 ? List.of("" + out.size() + " rows", out.get(0)) : out;
  }
  public static void main(String[] a) throws Exception {
    Properties p = new Properties(); p.put("user", a[1]); p.put("password", a[2]); for (int i = 3; i + 1 < a.length; i += 2) p.put(a[i], a[i + 1]);
    try (Connection c = DriverManager.getConnection(a[0], p)) {
      DatabaseMetaData m = c.getMetaData();
      step("version", () -> m.getDatabaseProductVersion());
      step("isolation", () -> c.getTransactionIsolation());
      Statement s = c.createStatement();
      step("create", () -> s.executeUpdate("CREATE TABLE j (id serial PRIMARY KEY, a integer, b numeric(10,2), c varchar(20) NOT NULL, d timestamptz, e boolean, f bigint, g text[], h uuid, i bytea, j date, k double precision)"));
      step("insert", () -> { PreparedStatement q = c.prepareStatement("INSERT INTO j (a,b,c,d,e,f,h,i,j,k) VALUES (?,?,?,?,?,?,?,?,?,?)", Statement.RETURN_GENERATED_KEYS); q.setInt(1, 1); q.setBigDecimal(2, new java.math.BigDecimal("2.50")); q.setString(3, "x"); q.setTimestamp(4, new Timestamp(0)); q.setBoolean(5, true); q.setLong(6, 7); q.setObject(7, UUID.fromString("00000000-0000-0000-0000-000000000007")); q.setBytes(8, new byte[]{0, 1}); q.setDate(9, java.sql.Date.valueOf("2020-01-02")); q.setDouble(10, 0.5); q.executeUpdate(); return rows(q.getGeneratedKeys()); });
      step("array", () -> { PreparedStatement q = c.prepareStatement("UPDATE j SET g = ? WHERE id = ANY(?)"); q.setArray(1, c.createArrayOf("text", new Object[]{"p", "q"})); q.setArray(2, c.createArrayOf("int4", new Object[]{1})); return q.executeUpdate(); });
      step("batch", () -> { PreparedStatement q = c.prepareStatement("INSERT INTO j (a, c) VALUES (?, ?)"); for (int i = 0; i < 5; i++) { q.setInt(1, i); q.setString(2, "b" + i); q.addBatch(); } return Arrays.toString(q.executeBatch()); });
      step("select", () -> rows(s.executeQuery("SELECT * FROM j ORDER BY id LIMIT 2")));
      step("repeat", () -> { PreparedStatement q = c.prepareStatement("SELECT id, b, d, f, h, i, j, k, g FROM j WHERE id = ?"); Object r = null; for (int i = 0; i < 8; i++) { q.setInt(1, 1); r = rows(q.executeQuery()); } return r; });
      step("fetch size", () -> { c.setAutoCommit(false); Statement q = c.createStatement(); q.setFetchSize(2); Object r = rows(q.executeQuery("SELECT id FROM j ORDER BY id")); c.commit(); c.setAutoCommit(true); return r; });
      step("savepoint", () -> { c.setAutoCommit(false); Savepoint v = c.setSavepoint(); s.executeUpdate("DELETE FROM j"); c.rollback(v); c.commit(); c.setAutoCommit(true); return rows(s.executeQuery("SELECT count(*) FROM j")); });
      step("level", () -> { c.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE); int l = c.getTransactionIsolation(); c.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED); return l; });
      step("readonly", () -> { c.setReadOnly(true); c.setAutoCommit(false); Object r = rows(s.executeQuery("SELECT 1")); c.commit(); c.setAutoCommit(true); c.setReadOnly(false); return r; });
      step("error", () -> rows(s.executeQuery("SELECT nope FROM j")));
      step("schemas", () -> rows(m.getSchemas()));
      step("catalogs", () -> rows(m.getCatalogs()));
      step("tableTypes", () -> rows(m.getTableTypes()));
      step("tables", () -> rows(m.getTables(null, "public", "%", new String[]{"TABLE", "VIEW", "MATERIALIZED VIEW"})));
      step("columns", () -> rows(m.getColumns(null, "public", "j", "%")));
      step("pk", () -> rows(m.getPrimaryKeys(null, "public", "j")));
      step("index", () -> rows(m.getIndexInfo(null, "public", "j", false, false)));
      step("keys of two", () -> rows(m.getPrimaryKeys(null, "public", "two")));
      step("indexes of two", () -> rows(m.getIndexInfo(null, "public", "two", false, false)));
      step("imported", () -> rows(m.getImportedKeys(null, "public", "j")));
      step("exported", () -> rows(m.getExportedKeys(null, "public", "j")));
      step("typeInfo", () -> rows(m.getTypeInfo()));
      step("procedures", () -> rows(m.getProcedures(null, "public", "%")));
      step("functions", () -> rows(m.getFunctions(null, "public", "%")));
      step("privileges", () -> rows(m.getTablePrivileges(null, "public", "j")));
      step("bestRow", () -> rows(m.getBestRowIdentifier(null, "public", "j", 0, true)));
      step("udts", () -> rows(m.getUDTs(null, "public", "%", null)));
      step("client info", () -> rows(m.getClientInfoProperties()));
      step("setSchema", () -> { c.setSchema("public"); return c.getSchema(); });
      step("meta", () -> { ResultSetMetaData r = s.executeQuery("SELECT id, c, b FROM j").getMetaData(); return r.getColumnTypeName(1) + r.isNullable(2) + r.isAutoIncrement(1); });
      step("copy", () -> { org.postgresql.copy.CopyManager k = ((org.postgresql.PGConnection) c).getCopyAPI(); k.copyIn("COPY j (a, c) FROM STDIN", new java.io.StringReader("9\tz\n")); java.io.StringWriter w = new java.io.StringWriter(); k.copyOut("COPY (SELECT a, c FROM j WHERE a = 9) TO STDOUT", w); return w.toString().trim(); });
      step("cancel", () -> { Statement q = c.createStatement(); q.setQueryTimeout(1); return rows(q.executeQuery("SELECT 1")); });
      step("valid", () -> c.isValid(2));
    }
  }
}
