"""The node lifecycle: a node that falls silent becomes Unknown, is tainted, and loses its pods in time."""
