"""The request path: from a request on the wire to an answer, the same for all kinds."""
