"""The Nacos operator: standalone servers and clusters, on embedded storage, MySQL or PostgreSQL.

resource.py, spec.py, status.py   what a Nacos is, and what the API server refuses
wish.py                           a wish that is complete
children/                         pure: the objects that it is made of
steps/                            the six steps of a round, as the document has them
operator.py                       the reconciler, and what leads to a round
database/, server/                databases and Nacos servers, behind protocols
"""
