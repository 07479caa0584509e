"""PodSecurity: the Pod Security Standards, by labels of namespaces."""
