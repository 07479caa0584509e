from __future__ import annotations

import socket
import ssl
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.operators.nacos.database import DatabaseError, Engine, Target, Tls, errors, quote_name

POSTGRES = Target(
    engine="postgresql", host="db", port=5432, database='na"cos', username="o'p", password="s3cret!", tls=Tls()
)
MYSQL = Target(engine="mysql", host="2001:db8::1", port=3306, database="na`cos", username="op", password="s3cret!")


@pytest.mark.spec("N-20")
@pytest.mark.parametrize(
    ("code", "reason", "advice"),
    [
        ("28P01", "AuthenticationFailed", "Secret"),
        ("3D000", "DatabaseMissing", 'CREATE DATABASE "na""cos"'),
        ("42501", "PermissionDenied", 'OWNER TO "o\'p"'),
        ("3F000", "PermissionDenied", "SCHEMA"),
        ("25006", "ReadOnly", "primary"),
        ("53300", "Overloaded", "limits"),
        ("57014", "Timeout", "transactions"),
        ("55P03", "Timeout", "lock"),
        ("57P01", "Interrupted", "again"),
        ("57P03", "Unreachable", "host"),
        ("40P01", "Interrupted", "again"),
        ("08006", "Interrupted", "again"),
        ("42P01", "SchemaMissing", "schema"),
        ("42804", "SchemaBroken", "restore"),
        ("XX000", "Failed", "refused"),
        ("", "Failed", "refused"),
    ],
)
def test_errors_of_postgresql_have_a_reason_and_advice(code: str, reason: str, advice: str) -> None:
    fault = errors.postgres_error(code, "what it said", POSTGRES)
    assert fault.reason == reason
    assert advice in fault.message
    assert "what it said" in fault.message


def test_the_access_file_is_named() -> None:
    fault = errors.postgres_error("28000", 'no pg_hba.conf entry for host "10.0.0.1", no encryption', POSTGRES)
    assert fault.reason == "AuthenticationFailed"
    assert "TLS mode" in fault.message


@pytest.mark.spec("N-20")
@pytest.mark.parametrize(
    ("number", "reason", "advice"),
    [
        (1045, "AuthenticationFailed", "Secret"),
        (1130, "AuthenticationFailed", "'%'"),
        (1049, "DatabaseMissing", "CREATE DATABASE `na``cos`"),
        (1044, "PermissionDenied", "GRANT ALL ON `na``cos`.*"),
        (1142, "PermissionDenied", "GRANT"),
        (1290, "ReadOnly", "primary"),
        (1040, "Overloaded", "connections"),
        (1205, "Timeout", "lock"),
        (1213, "Interrupted", "again"),
        (2013, "Interrupted", "again"),
        (1146, "SchemaMissing", "schema"),
        (1054, "SchemaBroken", "restore"),
        (3159, "TlsFailed", "require"),
        (9999, "Failed", "refused"),
    ],
)
def test_errors_of_mysql_have_a_reason_and_advice(number: int, reason: str, advice: str) -> None:
    fault = errors.mysql_error(number, "what it said", MYSQL)
    assert fault.reason == reason
    assert advice in fault.message


@pytest.mark.parametrize(
    ("error", "reason", "text"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "Unreachable", "Connection refused"),
        (socket.gaierror(-2, "Name or service not known"), "Unreachable", "DNS"),
        (ssl.SSLError(1, "[SSL] wrong version number"), "TlsFailed", "certificate"),
        (OSError(), "Unreachable", "OSError"),
    ],
)
def test_errors_of_the_network_have_a_reason_and_advice(error: OSError, reason: str, text: str) -> None:
    fault = errors.network_error(error, POSTGRES)
    assert fault.reason == reason
    assert text in fault.message


def test_the_longest_prefix_of_a_code_counts() -> None:
    assert errors.postgres_error("57P03", "a", POSTGRES).reason == "Unreachable"
    assert errors.postgres_error("57P02", "a", POSTGRES).reason == "Interrupted"
    assert errors.postgres_error("28P01", "pg_hba.conf", POSTGRES).message.endswith("choose another TLS mode")
    assert "pg_hba.conf does not let" not in errors.postgres_error("42501", "pg_hba.conf", POSTGRES).message


def test_errors_of_tls_say_what_the_certificate_lacks() -> None:
    refused = ssl.SSLCertVerificationError(1, "certificate verify failed")
    refused.verify_message = "self-signed certificate."
    fault = errors.network_error(refused, POSTGRES)
    assert fault.reason == "TlsFailed"
    assert "refused (self-signed certificate): give the CA" in fault.message
    assert "(wrong version)" in errors.network_error(ssl.SSLError(1, "wrong version"), POSTGRES).message
    assert "a text alone" in errors.network_error(ssl.SSLError("a text alone"), POSTGRES).message
    assert "(a text alone)" in errors.network_error(OSError("a text alone"), POSTGRES).message


@pytest.mark.parametrize(
    ("make", "reason", "text"),
    [
        (lambda: errors.no_tls(POSTGRES), "TlsFailed", "the mode is prefer"),
        (lambda: errors.standby(POSTGRES), "ReadOnly", "the primary"),
        (lambda: errors.read_only_transactions(POSTGRES), "ReadOnly", "default_transaction_read_only"),
        (lambda: errors.read_only_server(MYSQL, "super_read_only"), "ReadOnly", "SET GLOBAL super_read_only = OFF"),
        (lambda: errors.too_old(MYSQL, "MySQL 5.6", "5.7"), "ServerTooOld", "MySQL 5.6 is too old: 5.7 or newer"),
        (lambda: errors.occupied(MYSQL), "Timeout", "another operator"),
    ],
)
def test_what_sessions_find_out(make: Callable[[], DatabaseError], reason: str, text: str) -> None:
    fault = make()
    assert fault.reason == reason
    assert text in fault.message
    assert str(fault) == fault.message
    assert fault.message.startswith(("postgresql://", "mysql://"))


@pytest.mark.parametrize(("length", "cut"), [(299, False), (300, False), (301, True)])
def test_long_answers_are_cut(length: int, cut: bool) -> None:
    message = errors.postgres_error("XX000", "x" * length, POSTGRES).message
    assert message.endswith(f"({'x' * 300}…)" if cut else f"({'x' * length})")


def test_a_password_in_an_answer_is_hidden() -> None:
    assert "(no *** here)" in errors.postgres_error("XX000", "no\n s3cret!  here", POSTGRES).message
    nameless = Target(engine="mysql", host="h", port=1, database="d", username="u", password="")
    assert "(what it said)" in errors.mysql_error(9999, "what it said", nameless).message


@pytest.mark.parametrize(("number", "text"), [(1044, "GRANT ALL ON `na``cos`.* to the user"), (1142, "to `op`")])
def test_rights_in_mysql(number: int, text: str) -> None:
    assert text in errors.mysql_error(number, "a", MYSQL).message


@given(st.text(min_size=4), st.text(), st.text(), st.sampled_from(["28P01", "42501", "XX000"]))
def test_no_password_passes_through(password: str, before: str, after: str, code: str) -> None:
    target = Target(engine="postgresql", host="", port=1, database="", username="", password=f"§{password}§")
    said = f"{before}§{password}§{after}"
    fault: DatabaseError = errors.postgres_error(code, said, target)
    assert f"§{password}§" not in fault.message
    assert len(fault.message) < 700


def test_a_target_never_shows_its_password() -> None:
    assert "s3cret" not in f"{POSTGRES} {POSTGRES!r}"
    assert str(MYSQL) == "mysql://op@[2001:db8::1]:3306/na`cos"


@given(st.sampled_from(["postgresql", "mysql"]), st.text(min_size=1))
def test_quoted_names_end_where_they_should(engine: Engine, name: str) -> None:
    quoted = quote_name(engine, name)
    mark = quoted[0]
    assert quoted[-1] == mark
    assert quoted[1:-1].replace(mark * 2, "").count(mark) == 0
    assert quoted[1:-1].replace(mark * 2, mark) == name
