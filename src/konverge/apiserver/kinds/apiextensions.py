"""apiextensions.k8s.io: the rules of definitions live with custom kinds, in `konverge.apiserver.crd`."""

from __future__ import annotations

from konverge.apiserver.crd.definition import strategy

STRATEGIES = {"CustomResourceDefinition": strategy.STRATEGY}
