from __future__ import annotations

from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from konverge.operators.nacos.database import DatabaseError, Engine, Policy
from konverge.operators.nacos.database.plan import Layout, Plan, decide
from konverge.operators.nacos.database.scripts import SENTINEL, Family, Schema, schema

ENGINES: tuple[Engine, ...] = get_args(Engine)
FAMILIES: tuple[Family, ...] = get_args(Family)
POLICIES: tuple[Policy, ...] = get_args(Policy)

schemas = st.builds(schema, st.sampled_from(ENGINES), st.sampled_from(FAMILIES))
policies = st.sampled_from(POLICIES)
versions = st.integers(1, 5)


@st.composite
def databases(draw: st.DrawFn) -> tuple[Schema, dict[str, frozenset[str]], int | None]:
    """A schema, and a database with some of its tables; of their columns, at least those of the first release."""
    wanted = draw(schemas)
    later = wanted.can_add()
    layout = {}
    for table, columns in wanted.needs().items():
        if draw(st.booleans()):
            gone = {column for column in columns if (table, column) in later and draw(st.booleans())}
            layout[table] = columns - gone
    recorded = draw(st.none() | versions)
    if recorded is not None or draw(st.booleans()):
        layout[SENTINEL] = frozenset({"version", "updated_at"})
    return wanted, layout, recorded


def applied(layout: Layout, plan: Plan) -> dict[str, frozenset[str]]:
    """As a server does it: a column that is there cannot be added."""
    result = dict(layout)
    for statement in plan.statements:
        if statement.adds:
            assert statement.adds not in result[statement.table]
            result[statement.table] |= statement.columns
        else:
            result.setdefault(statement.table, statement.columns)
    return result


def whole(layout: Layout, wanted: Schema) -> bool:
    return all(columns <= layout.get(table, frozenset()) for table, columns in wanted.needs().items())


def outcome(layout: Layout, recorded: int | None, wanted: Schema, policy: Policy, version: int) -> Plan | DatabaseError:
    try:
        return decide(layout, recorded, wanted, policy, version)
    except DatabaseError as error:
        return error


@given(databases(), policies, versions)
def test_a_plan_leads_to_a_whole_schema_and_then_rests(
    database: tuple[Schema, dict[str, frozenset[str]], int | None], policy: Policy, version: int
) -> None:
    wanted, layout, recorded = database
    plan = outcome(layout, recorded, wanted, policy, version)
    if isinstance(plan, DatabaseError):
        expected = "SchemaMissing" if policy == "Never" else "VersionMismatch"
        assert plan.reason == expected
        assert policy == "Never" or (recorded is not None and recorded > version)
        return
    after = applied(layout, plan)
    assert whole(after, wanted)
    assert plan.version >= (recorded or 0), "versions never fall"
    if not plan.statements:
        assert after == layout
        return
    assert policy != "Never"
    assert SENTINEL in after
    assert policy == "Always" or not decide(after, plan.version, wanted, policy, version).statements


@given(databases(), policies, versions, st.data())
def test_another_applications_table_stops_everything(
    database: tuple[Schema, dict[str, frozenset[str]], int | None], policy: Policy, version: int, data: st.DataObject
) -> None:
    wanted, layout, recorded = database
    table = data.draw(st.sampled_from(sorted(wanted.needs())))
    essential = sorted(column for column in wanted.needs()[table] if (table, column) not in wanted.can_add())
    layout[table] = wanted.needs()[table] - {data.draw(st.sampled_from(essential))}
    refusal = outcome(layout, recorded, wanted, policy, version)
    assert isinstance(refusal, DatabaseError)
    assert refusal.reason == "SchemaBroken"
    assert table in refusal.message


def test_an_attempt_that_did_not_finish_is_finished() -> None:
    wanted = schema("mysql", "since-2.5")
    layout = {**wanted.needs(), SENTINEL: frozenset({"version", "updated_at"})}
    plan = decide(layout, None, wanted, "IfNotPresent", 1)
    assert plan.statements
    assert plan.first_users


def test_columns_of_a_table_that_is_made_now_are_not_added_twice() -> None:
    wanted = schema("postgresql", "since-2.5")
    plan = decide({}, None, wanted, "IfNotPresent", 1)
    added = [f"{statement.table}.{statement.adds}" for statement in plan.statements if statement.adds]
    assert added == ["his_config_info.publish_type", "his_config_info.gray_name", "his_config_info.ext_info"]
