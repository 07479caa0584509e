-- Which version of the schema this database has. Made first, filled last: a version means a whole schema, and an
-- empty table means that an earlier attempt did not finish.
CREATE TABLE IF NOT EXISTS nacos_schema_version (
  version integer NOT NULL PRIMARY KEY,
  updated_at timestamp with time zone NOT NULL DEFAULT now()
);
