"""What a ResourceQuota counts: the use of single objects, and which objects a quota is about.

Pure functions on plain objects, for the two who must agree: the API server's admission, which books what is made, and
the controller, which counts what is there.
"""
