"""The Nacos operator: standalone servers and clusters, on embedded storage, MySQL or PostgreSQL.

resource.py, spec.py   the resource, and what the API server refuses
desired.py             the desired state, complete
children/              pure: the desired objects
steps/                 the six steps of a reconcile, as in the document
operator.py            the reconciler, and what triggers a reconcile
database/, server/     databases and Nacos servers, behind protocols
"""
