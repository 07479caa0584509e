"""The Nacos operator: standalone servers and clusters, on embedded storage, MySQL or PostgreSQL.

resource.py, spec.py   the resource as it is stored (v1alpha1), and what the API server refuses
v1beta1.py             the resource in v1beta1, and the conversion
desired.py             the desired state, complete
children/              pure: the desired objects
steps/                 the six steps of a reconcile, as in the document
operator.py            the reconciler, and what triggers a reconcile
content/               what servers hold, declared: namespaces, configurations, users, permissions
backup/                backups by Jobs, by hand or by the clock, and restores
database/, server/     databases and Nacos servers, behind protocols
"""
