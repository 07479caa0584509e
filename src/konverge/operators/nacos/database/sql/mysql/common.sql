-- Tables that every line of Nacos has, for MySQL 5.7 and later and MariaDB 10.2 and later.

CREATE TABLE IF NOT EXISTS config_info (
  id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
  data_id varchar(255) NOT NULL,
  group_id varchar(128) NOT NULL,
  content longtext NOT NULL,
  md5 varchar(32),
  gmt_create datetime NOT NULL DEFAULT CURRENT_TIMESTAMP,
  gmt_modified datetime NOT NULL DEFAULT CURRENT_TIMESTAMP,
  src_user text,
  src_ip varchar(50),
  app_name varchar(128),
  tenant_id varchar(128) NOT NULL DEFAULT '',
  c_desc varchar(256),
  c_use varchar(64),
  effect varchar(64),
  type varchar(64),
  c_schema text,
  encrypted_data_key varchar(1024) NOT NULL DEFAULT '',
  UNIQUE KEY uk_configinfo_datagrouptenant (data_id, group_id, tenant_id)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS config_tags_relation (
  id bigint NOT NULL,
  tag_name varchar(128) NOT NULL,
  tag_type varchar(64),
  data_id varchar(255) NOT NULL,
  group_id varchar(128) NOT NULL,
  tenant_id varchar(128) NOT NULL DEFAULT '',
  nid bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
  UNIQUE KEY uk_configtagrelation_configidtag (id, tag_name, tag_type),
  KEY idx_config_tags_relation_tenant_id (tenant_id)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS group_capacity (
  id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
  group_id varchar(128) NOT NULL DEFAULT '',
  quota int unsigned NOT NULL DEFAULT 0,
  `usage` int unsigned NOT NULL DEFAULT 0,
  max_size int unsigned NOT NULL DEFAULT 0,
  max_aggr_count int unsigned NOT NULL DEFAULT 0,
  max_aggr_size int unsigned NOT NULL DEFAULT 0,
  max_history_count int unsigned NOT NULL DEFAULT 0,
  gmt_create datetime NOT NULL DEFAULT CURRENT_TIMESTAMP,
  gmt_modified datetime NOT NULL DEFAULT CURRENT_TIMESTAMP,
  UNIQUE KEY uk_group_id (group_id)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS tenant_capacity (
  id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
  tenant_id varchar(128) NOT NULL DEFAULT '',
  quota int unsigned NOT NULL DEFAULT 0,
  `usage` int unsigned NOT NULL DEFAULT 0,
  max_size int unsigned NOT NULL DEFAULT 0,
  max_aggr_count int unsigned NOT NULL DEFAULT 0,
  max_aggr_size int unsigned NOT NULL DEFAULT 0,
  max_history_count int unsigned NOT NULL DEFAULT 0,
  gmt_create datetime NOT NULL DEFAULT CURRENT_TIMESTAMP,
  gmt_modified datetime NOT NULL DEFAULT CURRENT_TIMESTAMP,
  UNIQUE KEY uk_tenant_id (tenant_id)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS his_config_info (
  id bigint NOT NULL,
  nid bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
  data_id varchar(255) NOT NULL,
  group_id varchar(128) NOT NULL,
  app_name varchar(128),
  content longtext NOT NULL,
  md5 varchar(32),
  gmt_create datetime NOT NULL DEFAULT CURRENT_TIMESTAMP,
  gmt_modified datetime NOT NULL DEFAULT CURRENT_TIMESTAMP,
  src_user text,
  src_ip varchar(50),
  op_type char(10),
  tenant_id varchar(128) NOT NULL DEFAULT '',
  encrypted_data_key varchar(1024) NOT NULL DEFAULT '',
  KEY idx_his_config_info_gmt_create (gmt_create),
  KEY idx_his_config_info_gmt_modified (gmt_modified),
  KEY idx_his_config_info_data_id (data_id)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS tenant_info (
  id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
  kp varchar(128) NOT NULL,
  tenant_id varchar(128) NOT NULL DEFAULT '',
  tenant_name varchar(128) DEFAULT '',
  tenant_desc varchar(256),
  create_source varchar(32),
  gmt_create bigint NOT NULL,
  gmt_modified bigint NOT NULL,
  UNIQUE KEY uk_tenant_info_kptenantid (kp, tenant_id),
  KEY idx_tenant_info_tenant_id (tenant_id)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS users (
  username varchar(50) PRIMARY KEY,
  password varchar(500) NOT NULL,
  enabled boolean NOT NULL
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS roles (
  username varchar(50) NOT NULL,
  role varchar(50) NOT NULL,
  UNIQUE KEY idx_user_role (username, role)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS permissions (
  role varchar(50) NOT NULL,
  resource varchar(128) NOT NULL,
  action varchar(8) NOT NULL,
  UNIQUE KEY uk_role_permission (role, resource, action)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Databases that were made for Nacos 2.0 and 2.1 lack these. MySQL has no ADD COLUMN.
ALTER TABLE config_info ADD COLUMN encrypted_data_key varchar(1024) NOT NULL DEFAULT '';
ALTER TABLE his_config_info ADD COLUMN encrypted_data_key varchar(1024) NOT NULL DEFAULT '';
