-- Which version of the schema this database has; written last, so that a version means a whole schema.
CREATE TABLE IF NOT EXISTS nacos_schema_version (
  version integer NOT NULL PRIMARY KEY,
  updated_at timestamp with time zone NOT NULL DEFAULT now()
);
