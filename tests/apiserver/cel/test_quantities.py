"""Quantities of any size in expressions, as kube-apiserver 1.37.1 judges them; but it adds what we refuse to add."""

from __future__ import annotations

import pytest

from konverge.objects.quantity import Quantity, QuantityError
from tests.apiserver.api import Api
from tests.apiserver.cel.show import outcome
from tests.apiserver.definitions import define, definition

APART = "quantities {} decimal places apart cannot be put in one unit"


@pytest.mark.spec("S-71")
@pytest.mark.parametrize("amount", ["1e400", "1e4096", "1e4097", "1e5000", "1e999999999"])
@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("sign(quantity('{}'))", "1"),
        ("sign(quantity('-{}'))", "-1"),
        ("quantity('{}').isInteger()", "false"),
        ("quantity('-{}').isInteger()", "false"),
        ("quantity('{}').asApproximateFloat() > 1.7e308", "true"),
        ("quantity('-{}').asApproximateFloat() < -1.7e308", "true"),
        ("quantity('{}').isGreaterThan(quantity('1e399'))", "true"),
        ("quantity('-{}').compareTo(quantity('1e399'))", "-1"),
    ],
)
def test_amounts_beyond_all_numbers_are_compared(expression: str, value: str, amount: str) -> None:
    assert outcome(expression.format(amount))["value"] == value


@pytest.mark.spec("S-71")
@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("sign(quantity('0e5000'))", "0"),
        ("quantity('0e5000').isInteger()", "true"),
        ("quantity('0e5000').asInteger()", "0"),
        ("quantity('1e5000').sub(quantity('1e5000')).asInteger()", "0"),
        ("quantity('9223372036854775').add(quantity('1m')).isInteger()", "false"),
        ("quantity('9223372036854775k').add(807).asInteger()", "9223372036854775807"),
        ("quantity('9223372036854775k').add(808).isInteger()", "false"),
        ("quantity('-9223372036854775k').sub(808).asInteger()", "-9223372036854775808"),
        ("quantity('-9223372036854775k').sub(809).isInteger()", "false"),
        ("sign(quantity('1e400').add(1)) + sign(quantity('1e400').sub(1))", "2"),
        ("sign(quantity('1').sub(quantity('1e400')))", "-1"),
        ("quantity('1500m').asApproximateFloat()", "double(1.5)"),
    ],
)
def test_zero_and_the_bounds(expression: str, value: str) -> None:
    assert outcome(expression)["value"] == value


@pytest.mark.spec("S-71")
@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("quantity('1e5000').asInteger()", "cannot convert value to integer"),
        ("quantity('1e5000').add(quantity('1'))", APART.format(5000)),
        ("quantity('1').sub(quantity('1e5000'))", APART.format(5000)),
        ("quantity('1e5000').add(1)", APART.format(5000)),
        ("quantity('1e5000').sub(1)", APART.format(5000)),
        (f"quantity('{'9' * 1000}e4000').add(quantity('1'))", APART.format(4000)),
    ],
)
def test_what_cannot_be_computed_is_an_error_of_the_expression(expression: str, problem: str) -> None:
    assert outcome(expression)["error"] == problem


@pytest.mark.spec("S-71")
def test_a_sum_has_no_more_digits_than_can_be_printed() -> None:
    assert len(str(Quantity("1e4090") + Quantity("1m") + Quantity("1"))) > 4000
    for large in (Quantity("1e4096"), Quantity("1" * 2000 + "e2100")):
        for sum_of in (large.__add__, lambda small, large=large: small + large):
            with pytest.raises(QuantityError, match="decimal places apart"):
                sum_of(Quantity("1"))


@pytest.mark.spec("S-71")
async def test_rules_judge_any_quantity(api: Api) -> None:
    rules = [
        {"rule": "sign(quantity(self.q)) > 0", "message": "is negative"},
        {"rule": "quantity(self.q).asApproximateFloat() > 1.0", "message": "is small"},
        {"rule": "self.q != '2e5000' || quantity(self.q).asInteger() > 0"},
    ]
    text = {"type": "string", "maxLength": 100}
    spec = {"type": "object", "properties": {"q": text}, "x-kubernetes-validations": rules}
    schema = {"type": "object", "properties": {"spec": spec}}
    await define(api, definition("crabs", "Crab", scope="Cluster", schema=schema))

    async def refusal(amount: str) -> str:
        crab = {"apiVersion": "example.com/v1", "kind": "Crab", "metadata": {"name": "x"}, "spec": {"q": amount}}
        refused = await api.call("POST", "/apis/example.com/v1/crabs", crab, expect=422)
        return str(refused["message"])

    assert "is negative" in await refusal("-1e5000")
    assert "cannot convert value to integer" in await refusal("2e5000")
    made = {"apiVersion": "example.com/v1", "kind": "Crab", "metadata": {"name": "x"}, "spec": {"q": "1e5000"}}
    await api.call("POST", "/apis/example.com/v1/crabs", made, expect=201)
