CREATE TABLE IF NOT EXISTS config_info_gray (
  id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
  data_id varchar(255) NOT NULL,
  group_id varchar(128) NOT NULL,
  content longtext NOT NULL,
  md5 varchar(32),
  src_user text,
  src_ip varchar(100),
  gmt_create datetime(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
  gmt_modified datetime(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
  app_name varchar(128),
  tenant_id varchar(128) NOT NULL DEFAULT '',
  gray_name varchar(128) NOT NULL,
  gray_rule text NOT NULL,
  encrypted_data_key varchar(256) NOT NULL DEFAULT '',
  UNIQUE KEY uk_configinfogray_datagrouptenantgray (data_id, group_id, tenant_id, gray_name),
  KEY idx_config_info_gray_dataid_gmt_modified (data_id, gmt_modified),
  KEY idx_config_info_gray_gmt_modified (gmt_modified)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

ALTER TABLE his_config_info ADD COLUMN publish_type varchar(50) DEFAULT 'formal';
ALTER TABLE his_config_info ADD COLUMN gray_name varchar(50);
ALTER TABLE his_config_info ADD COLUMN ext_info longtext;
