"""The WebApp operator: the smallest whole operator, and the one to read first.

kind.py        what a WebApp is: its spec, its status, what the API server refuses
children.py    pure: the Deployment and the Service that it wants, and where the live ones differ
reconciler.py  the loop: make, sync, repair, look, say so
operator.py    what the command line needs to know
"""

from konverge.operators.webapp.kind import WebApp, WebAppSpec, WebAppStatus
from konverge.operators.webapp.reconciler import WebAppReconciler, controllers

__all__ = ["WebApp", "WebAppReconciler", "WebAppSpec", "WebAppStatus", "controllers"]
