CREATE TABLE IF NOT EXISTS config_info_aggr (
  id bigserial PRIMARY KEY,
  data_id varchar(255) NOT NULL,
  group_id varchar(128) NOT NULL,
  datum_id varchar(255) NOT NULL,
  content text NOT NULL,
  gmt_modified timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
  app_name varchar(128),
  tenant_id varchar(128) NOT NULL DEFAULT '',
  CONSTRAINT uk_configinfoaggr_datagrouptenantdatum UNIQUE (data_id, group_id, tenant_id, datum_id)
);
