"""Other projects' own test suites, run on our API server: kubectl's test/cmd, those of controller-runtime and of four
operators that start envtest, and Kubernetes' conformance specs.

The suites are taken from Go modules as they are published, copied into a scratch folder and left as they are; what is
here starts the servers, says which parts run, and counts. `python -m tools.suites --help` runs them; `make suites` runs
all of them and fails when something fails that is not known to fail on the real server as well.
"""
