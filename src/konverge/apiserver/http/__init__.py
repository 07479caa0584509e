"""The request path: from a request on the wire to an answer, one way for all kinds."""
