"""What runs in the Jobs: shell, for the images of PostgreSQL, MySQL and MariaDB.

The address and the credentials of the database are in the environment, by the names that its programs know: nothing
secret is on a command line. `FILE` is the path of the data, `FILES` are those of all attempts so far.

A script writes to `$FILE.part` and renames it when it is complete and on the disk: what has its name is whole. Its
manifest comes last: `MANIFEST` is all of it but the size and the digest. What an attempt leaves behind that was killed
is removed by the next one. The result goes to the termination message; where that stays empty, the kubelet puts the end
of the log there, which says what went wrong.
"""

from __future__ import annotations

from konverge.operators.nacos.children.mysql_tls import CLIENT_OPTIONS

SERVER_NAME = "SERVER_NAME"
"""The name in the certificate of PostgreSQL, where it is not the host."""
_BEGIN = """\
set -eu
umask 077
mkdir -p "$(dirname "$FILE")"
for file in $FILES; do rm -f "$file.part" "$file.part.failed" "$file.manifest.json.part"; done
rm -f "$FILE.manifest.json"
part="$FILE.part"
trap 'rm -f "$part" "$part.failed" "$FILE.manifest.json.part"' EXIT
trap 'exit 143' TERM INT
"""
# The shell is process 1 of its container: it hears a signal while it waits, not while a program runs.
_END = """\
sync
size=$(wc -c <"$part")
sum=$(sha256sum "$part")
mv "$part" "$FILE"
sync
printf '%s,"size":%d,"sha256":"%s"}' "${MANIFEST%\\}}" "$size" "${sum%% *}" >"$FILE.manifest.json.part"
sync
mv "$FILE.manifest.json.part" "$FILE.manifest.json"
sync
printf '{"size": %d, "sha256": "%s"}' "$size" "${sum%% *}" >"$RESULT"
"""
# libpq checks the certificate for the host; with an address beside it, the host is a name only.
_POSTGRES_NAME = """\
if [ -n "${SERVER_NAME:-}" ]; then
  PGHOSTADDR=$(getent hosts "$PGHOST" | head -n 1 | cut -d' ' -f1)
  export PGHOSTADDR PGHOST="$SERVER_NAME"
fi
"""
_POSTGRES_DUMP = """\
pg_dump --no-password --format=custom --no-owner --no-privileges --lock-wait-timeout=60s --file="$part" &
wait "$!"
pg_restore --list "$part" >/dev/null
"""
_MYSQL_TLS = f"""\
tls=
if [ -n "${{MYSQL_TLS:-}}" ]; then
{CLIENT_OPTIONS}fi
"""
# MariaDB renames its programs, and lacks options of MySQL's. Dumps end with a line that says that they are complete.
_MYSQL_DUMP = """\
dump=$(command -v mysqldump || command -v mariadb-dump)
set -- --single-transaction --quick --skip-lock-tables --hex-blob --no-tablespaces --default-character-set=utf8mb4
if "$dump" --help | grep -q -e --set-gtid-purged; then set -- "$@" --set-gtid-purged=OFF; fi
set -- -h "$MYSQL_HOST" -P "$MYSQL_PORT" -u "$MYSQL_USER" $tls "$@"
export MYSQL_PWD="$MYSQL_PASS"
{ "$dump" "$@" "$MYSQL_DB" || : >"$part.failed"; } | gzip -c >"$part" &
wait "$!"
[ ! -e "$part.failed" ]
gzip -dc "$part" | tail -n 1 | grep -q -e '-- Dump completed' || { echo "the dump is not complete" >&2; exit 1; }
"""

POSTGRES_BACKUP = _BEGIN + _POSTGRES_NAME + _POSTGRES_DUMP + _END
MYSQL_BACKUP = _BEGIN + _MYSQL_TLS + _MYSQL_DUMP + _END
# An exit code of 3 says that the database was changed.
_CHECK = """\
set -eu
touched=
trap 'code=$?; [ "$code" -eq 0 ] || [ -z "$touched" ] || code=3; exit "$code"' EXIT
trap 'exit 143' TERM INT
[ -f "$FILE" ] || { echo "there is no file $FILE in the volume" >&2; exit 1; }
sum=$(sha256sum "$FILE")
if [ "${sum%% *}" != "$SHA256" ]; then
  echo "$FILE is not what was stored: its sha256 is ${sum%% *}, and must be $SHA256" >&2
  exit 1
fi
refuse() {
  echo "the database holds namespaces or configurations; overwrite: true replaces them" >&2
  exit 1
}
"""
_HOLDS = "SELECT EXISTS (SELECT 1 FROM config_info) OR EXISTS (SELECT 1 FROM tenant_info)"
# In one transaction: it is done, or nothing has changed. The database is named by PGDATABASE. What programs say about
# the rows that they fail at is left out: configurations may hold secrets.
_POSTGRES_LOAD = f"""\
pg_restore --list "$FILE" >/dev/null
ask() {{ psql -X -A -t -q -w -v ON_ERROR_STOP=1 -c "$1"; }}
there=$(ask "SELECT to_regclass('config_info') IS NOT NULL AND to_regclass('tenant_info') IS NOT NULL")
if [ "$OVERWRITE" != true ] && [ "$there" = t ]; then
  holds=$(ask "{_HOLDS}")
  [ "$holds" = f ] || refuse
fi
set -- --no-password --clean --if-exists --no-owner --no-privileges --single-transaction --exit-on-error --dbname=
load() {{ pg_restore "$@" "$FILE" 2>&1 && echo 0 >&4 || echo 1 >&4; }}
code=$({{ load "$@" | grep -v -e '^CONTEXT:' -e '^DETAIL:' >&2; }} 4>&1) || :
[ "$code" = 0 ]
"""
_MYSQL_LOAD = f"""\
gzip -t "$FILE"
client=$(command -v mysql || command -v mariadb)
set -- -h "$MYSQL_HOST" -P "$MYSQL_PORT" -u "$MYSQL_USER" $tls
set -- "$@" --batch --skip-column-names --default-character-set=utf8mb4
if "$client" --help | grep -q -e print-query-on-error; then set -- "$@" --skip-print-query-on-error; fi
export MYSQL_PWD="$MYSQL_PASS"
tables="SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()"
there=$("$client" "$@" -e "$tables AND table_name IN ('config_info', 'tenant_info')" "$MYSQL_DB")
if [ "$OVERWRITE" != true ] && [ "$there" = 2 ]; then
  holds=$("$client" "$@" -e "{_HOLDS}" "$MYSQL_DB")
  [ "$holds" = 0 ] || refuse
fi
touched=1
gzip -dc "$FILE" | "$client" "$@" "$MYSQL_DB" &
wait "$!"
"""  # noqa: S608 - run by a shell

POSTGRES_RESTORE = _CHECK + _POSTGRES_NAME + _POSTGRES_LOAD
MYSQL_RESTORE = _CHECK + _MYSQL_TLS + _MYSQL_LOAD
DELETE = """\
set -eu
for file in $FILES; do
  rm -f "$file.manifest.json" "$file" "$file.part" "$file.part.failed" "$file.manifest.json.part"
done
sync
"""
"""Removes the data of all attempts. There may be none."""
