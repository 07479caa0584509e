"""The network of pods that are containers: each has a network namespace with an address of its own.

`keeper` is the process that makes namespaces and the ways between them, `network` talks to it, `proxies` are what
listens on the addresses of Services, `services` says which, and `resolving` is what pods know of names.
"""
