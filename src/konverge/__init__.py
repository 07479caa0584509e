"""Konverge: a controller runtime for Python and an embedded Kubernetes to run it on.

Importing this package imports nothing heavy: each public name is loaded when it is first used, so that
`import konverge` costs little more than asyncio itself.
"""
