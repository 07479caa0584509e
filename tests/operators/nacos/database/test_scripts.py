from __future__ import annotations

import re
from collections import Counter
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.operators.nacos.database import DatabaseError, Engine, mysql_script, postgres_script, scripts
from konverge.operators.nacos.database.scripts import Family

ENGINES: tuple[Engine, ...] = get_args(Engine)
FAMILIES: tuple[Family, ...] = get_args(Family)

quoted = st.text("ab;-'\\ \n", max_size=8).map(lambda text: "'" + text.replace("\\", "").replace("'", "''") + "'")
plain = st.text("ab(),= \n", min_size=1, max_size=8)
names = st.text("ab;-", max_size=5).map(lambda text: f'"{text}"')
statement = st.lists(st.one_of(plain, quoted, names), min_size=1, max_size=5).map("".join)
comment = st.text("ab;'\"` ", max_size=8).map(lambda text: f"--{text}\n")


@given(st.lists(st.tuples(statement, comment), max_size=6))
def test_splitting_undoes_joining(parts: list[tuple[str, str]]) -> None:
    script = "".join(f"{note}{text};{note}" for text, note in parts)
    assert scripts.split(script) == [text.strip() for text, _ in parts if text.strip()]


@given(st.text())
def test_any_text_is_split_without_trouble(text: str) -> None:
    assert all(statement.strip() == statement and statement for statement in scripts.split(text))


def test_a_strange_statement_in_a_schema_is_refused() -> None:
    with pytest.raises(ValueError, match="DROP"):
        scripts.parse("DROP TABLE users")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("family", FAMILIES)
class TestSchemas:
    def test_the_tables_of_each_line(self, engine: Engine, family: Family) -> None:
        tables = set(scripts.schema(engine, family).needs())
        common = {
            *("config_info", "config_tags_relation", "group_capacity", "tenant_capacity", "his_config_info"),
            *("tenant_info", "users", "roles", "permissions"),
        }
        assert common <= tables
        assert ("config_info_gray" in tables) == (family == "since-2.5")
        assert ("config_info_aggr" in tables) == (family == "until-2.4")
        assert family == "since-2.5" or {"config_info_beta", "config_info_tag"} <= tables

    def test_columns_are_read_and_keys_are_not(self, engine: Engine, family: Family) -> None:
        needs = scripts.schema(engine, family).needs()
        assert needs["users"] == {"username", "password", "enabled"}
        assert needs["permissions"] == {"role", "resource", "action"}
        assert needs["tenant_capacity"] >= {"usage", "max_history_count", "gmt_modified"}
        assert len(needs["config_info"]) == 17
        assert len(needs["his_config_info"]) == (17 if family == "since-2.5" else 14)

    def test_names_of_indexes_are_unique(self, engine: Engine, family: Family) -> None:
        text = "\n".join(statement.text for statement in scripts.schema(engine, family).statements)
        names = Counter(re.findall(r"(?:CONSTRAINT|UNIQUE KEY|\bKEY|INDEX IF NOT EXISTS) ((?:uk|idx)_\w+)", text))
        assert len(names) > 10
        assert set(names.values()) == {1}

    def test_the_sentinel_comes_first(self, engine: Engine, family: Family) -> None:
        statements = scripts.schema(engine, family).statements
        assert statements[0].table == scripts.SENTINEL
        assert scripts.SENTINEL not in scripts.schema(engine, family).needs()


@pytest.mark.spec("N-07")
@pytest.mark.parametrize("line", ["2.0", "2.4", "2.5", "3.0"])
def test_scripts_can_be_run_again_and_hold_no_user(line: str) -> None:
    for script in (mysql_script(line), postgres_script(line)):
        assert all(
            re.match(r"CREATE (TABLE|INDEX) IF NOT EXISTS|ALTER TABLE|SET @|PREPARE|EXECUTE|DEALLOCATE", text)
            for text in scripts.split(script)
        )
        assert "INSERT" not in script
    assert "ADD COLUMN IF NOT EXISTS encrypted_data_key" in postgres_script(line)
    assert "ADD COLUMN IF NOT EXISTS" not in mysql_script(line)
    assert mysql_script(line).count("PREPARE change_once FROM") == (5 if line in ("2.5", "3.0") else 3)


def test_the_default_admin_is_added_on_demand() -> None:
    assert mysql_script("2.0", default_admin=True).count("INSERT INTO") == 2
    assert postgres_script("2.0", default_admin=True).endswith("WHERE known = 0;\n\n")


@pytest.mark.parametrize(
    ("line", "family"),
    [
        ("1.4", "until-2.4"),
        ("2.0", "until-2.4"),
        ("2.4", "until-2.4"),
        ("v2.4.3-slim", "until-2.4"),
        ("2.5", "since-2.5"),
        ("2.10", "since-2.5"),
        ("3.0", "since-2.5"),
        ("10.0", "since-2.5"),
    ],
)
def test_the_family_of_a_line(line: str, family: str) -> None:
    assert scripts.family_of(line) == family


@pytest.mark.parametrize("line", ["", "latest", "2", "x2.4", "2.x"])
def test_a_text_that_is_not_a_line_is_refused(line: str) -> None:
    with pytest.raises(DatabaseError) as caught:
        scripts.family_of(line)
    assert caught.value.reason == "InvalidTarget"


def test_texts_of_guarded_statements_keep_their_quotes() -> None:
    script = mysql_script("3.0")
    assert "'ALTER TABLE his_config_info ADD COLUMN publish_type varchar(50) DEFAULT ''formal''', 'DO 0')" in script
    assert "table_name = 'his_config_info' AND column_name = 'publish_type'" in script
    assert "ADD COLUMN IF NOT EXISTS publish_type" in postgres_script("3.0")
