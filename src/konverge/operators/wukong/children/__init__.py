"""The objects that a Wukong is made of: pure functions from a resource to a child, one file per sort.

Each is what a server-side apply sends: the fields that are ours, and none else.
"""
