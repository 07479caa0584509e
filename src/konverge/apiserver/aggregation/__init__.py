"""Groups that other API servers answer: APIServices, as kube-aggregator serves them.

`registered` knows which there are, `availability` asks them and writes their conditions, `passing_on` sends requests to
them under the identity of the front proxy, `documents` makes them part of discovery.
"""
