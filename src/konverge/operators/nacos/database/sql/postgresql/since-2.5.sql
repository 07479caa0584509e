CREATE TABLE IF NOT EXISTS config_info_gray (
  id bigserial PRIMARY KEY,
  data_id varchar(255) NOT NULL,
  group_id varchar(128) NOT NULL,
  content text NOT NULL,
  md5 varchar(32),
  src_user text,
  src_ip varchar(100),
  gmt_create timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  gmt_modified timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  app_name varchar(128),
  tenant_id varchar(128) NOT NULL DEFAULT '',
  gray_name varchar(128) NOT NULL,
  gray_rule text NOT NULL,
  encrypted_data_key varchar(256) NOT NULL DEFAULT '',
  CONSTRAINT uk_configinfogray_datagrouptenantgray UNIQUE (data_id, group_id, tenant_id, gray_name)
);
CREATE INDEX IF NOT EXISTS idx_config_info_gray_dataid_gmt_modified ON config_info_gray (data_id, gmt_modified);
CREATE INDEX IF NOT EXISTS idx_config_info_gray_gmt_modified ON config_info_gray (gmt_modified);

ALTER TABLE his_config_info ADD COLUMN publish_type varchar(50) DEFAULT 'formal';
ALTER TABLE his_config_info ADD COLUMN gray_name varchar(50);
ALTER TABLE his_config_info ADD COLUMN ext_info text;
