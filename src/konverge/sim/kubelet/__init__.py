"""The simulated kubelet: pods take their way through their phases, in time order.

`behaviour` is the script that a container follows, `machine` the pure state machine of a pod's containers, `probes` the
arithmetic of probes, `status` what the API shows of it, `agent` the controller that ties them to the API.
"""
