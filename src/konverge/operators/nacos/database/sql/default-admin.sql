-- User nacos with the password nacos, as servers before 2.4 expect it; only where no user exists.
INSERT INTO users (username, password, enabled)
  SELECT 'nacos', '$2a$10$EuWPZHzz32dJN7jexM34MOeYirDdFAZm2kuWj7VEOJhhZkDrxfvUu', TRUE
  FROM (SELECT COUNT(*) AS known FROM users) AS counted WHERE known = 0;
INSERT INTO roles (username, role)
  SELECT 'nacos', 'ROLE_ADMIN'
  FROM (SELECT COUNT(*) AS known FROM roles) AS counted WHERE known = 0;
