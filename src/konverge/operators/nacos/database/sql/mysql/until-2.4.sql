CREATE TABLE IF NOT EXISTS config_info_aggr (
  id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
  data_id varchar(255) NOT NULL,
  group_id varchar(128) NOT NULL,
  datum_id varchar(255) NOT NULL,
  content longtext NOT NULL,
  gmt_modified datetime NOT NULL DEFAULT CURRENT_TIMESTAMP,
  app_name varchar(128),
  tenant_id varchar(128) NOT NULL DEFAULT '',
  UNIQUE KEY uk_configinfoaggr_datagrouptenantdatum (data_id, group_id, tenant_id, datum_id)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS config_info_beta (
  id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
  data_id varchar(255) NOT NULL,
  group_id varchar(128) NOT NULL,
  app_name varchar(128),
  content longtext NOT NULL,
  beta_ips varchar(1024),
  md5 varchar(32),
  gmt_create datetime NOT NULL DEFAULT CURRENT_TIMESTAMP,
  gmt_modified datetime NOT NULL DEFAULT CURRENT_TIMESTAMP,
  src_user text,
  src_ip varchar(50),
  tenant_id varchar(128) NOT NULL DEFAULT '',
  encrypted_data_key varchar(1024) NOT NULL DEFAULT '',
  UNIQUE KEY uk_configinfobeta_datagrouptenant (data_id, group_id, tenant_id)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS config_info_tag (
  id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
  data_id varchar(255) NOT NULL,
  group_id varchar(128) NOT NULL,
  tenant_id varchar(128) NOT NULL DEFAULT '',
  tag_id varchar(128) NOT NULL,
  app_name varchar(128),
  content longtext NOT NULL,
  md5 varchar(32),
  gmt_create datetime NOT NULL DEFAULT CURRENT_TIMESTAMP,
  gmt_modified datetime NOT NULL DEFAULT CURRENT_TIMESTAMP,
  src_user text,
  src_ip varchar(50),
  UNIQUE KEY uk_configinfotag_datagrouptenanttag (data_id, group_id, tenant_id, tag_id)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

ALTER TABLE config_info_beta ADD COLUMN encrypted_data_key varchar(1024) NOT NULL DEFAULT '';
