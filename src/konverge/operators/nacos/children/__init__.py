"""The objects that a Nacos is made of: pure functions from a wish to a child, one file per sort."""
