"""The WebApp operator as the catalogue knows it."""

from konverge.operators.catalog import Operator
from konverge.operators.webapp.kind import WebApp
from konverge.operators.webapp.reconciler import controllers

OPERATOR = Operator(name="webapp", kinds=[WebApp], controllers=controllers, samples=("samples.yaml",))
