"""Priority and fairness: which requests begin at once, which wait, and which are refused when there are too many.

`matching` finds the FlowSchema of a request, `shares` divides the seats of the server among the priority levels,
`queues` holds the requests of one level that wait, `control` keeps all of that in step with the stored configuration
and is what the request path asks.

A request holds a seat from when it first waits for something until it is answered. One that is answered without
waiting needs none: nothing else runs meanwhile.

Upstream: apiserver/pkg/util/flowcontrol.
"""
