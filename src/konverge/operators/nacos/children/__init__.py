"""The children of a Nacos: pure functions from its desired state to an object."""
