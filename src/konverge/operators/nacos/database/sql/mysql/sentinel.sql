-- Which version of the schema this database has. Made first, filled last: a version means a whole schema, and an
-- empty table means that an earlier attempt did not finish.
CREATE TABLE IF NOT EXISTS nacos_schema_version (
  version int NOT NULL PRIMARY KEY,
  updated_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
