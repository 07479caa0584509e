"""A drop-in for envtest: executables named `kube-apiserver` and `etcd` that run this server.

Test suites in Go, Java or JavaScript that follow envtest's convention start both from the folder that
KUBEBUILDER_ASSETS names; with `konverge envtest-assets DIR` they run on Konverge unchanged.
"""
