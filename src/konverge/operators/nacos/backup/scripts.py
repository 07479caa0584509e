"""What runs in the Jobs: shell, for the images of PostgreSQL, MySQL and MariaDB.

The address and the credentials of the database are in the environment, by the names that its programs know: nothing
secret is on a command line. `FILE` is the path of the data, `PREFIX` what the paths of all attempts begin with.

A script writes to `$FILE.part` and renames it when it is complete and on the disk: what has its name is whole. What an
attempt leaves behind that was killed is removed by the next one. The result goes to the termination message; where that
stays empty, the kubelet puts the end of the log there, which says what went wrong.
"""

from __future__ import annotations

SERVER_NAME = "SERVER_NAME"
"""The name in the certificate of PostgreSQL, where it is not the host."""
_BEGIN = """\
set -eu
umask 077
mkdir -p "$(dirname "$FILE")"
rm -f "$PREFIX"*.part
part="$FILE.part"
trap 'rm -f "$part" "$part.failed"' EXIT
trap 'exit 143' TERM INT
"""
# The shell is process 1 of its container: it hears a signal while it waits, not while a program runs.
_END = """\
sync
size=$(wc -c <"$part")
sum=$(sha256sum "$part")
mv "$part" "$FILE"
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
# MariaDB renames its programs, and lacks options of MySQL's. Dumps end with a line that says that they are complete.
_MYSQL_DUMP = """\
dump=$(command -v mysqldump || command -v mariadb-dump)
set -- --single-transaction --quick --skip-lock-tables --hex-blob --no-tablespaces --default-character-set=utf8mb4
if "$dump" --help | grep -q -e --set-gtid-purged; then set -- "$@" --set-gtid-purged=OFF; fi
set -- -h "$MYSQL_HOST" -P "$MYSQL_PORT" -u "$MYSQL_USER" "$@"
export MYSQL_PWD="$MYSQL_PASS"
{ "$dump" "$@" "$MYSQL_DB" || : >"$part.failed"; } | gzip -c >"$part" &
wait "$!"
[ ! -e "$part.failed" ]
gzip -dc "$part" | tail -n 1 | grep -q -e '-- Dump completed' || { echo "the dump is not complete" >&2; exit 1; }
"""

POSTGRES_BACKUP = _BEGIN + _POSTGRES_NAME + _POSTGRES_DUMP + _END
MYSQL_BACKUP = _BEGIN + _MYSQL_DUMP + _END
DELETE = """\
set -eu
rm -f "$PREFIX"*
sync
"""
"""Removes the data of all attempts. There may be none."""
