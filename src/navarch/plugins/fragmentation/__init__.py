"""Fragmentation: where a pod goes so that what stays free is of use to the pods that come after it.

`typical_pods` says which pods those are, `measure` how much of a node's free GPUs they could not use, `remnants` what a partly used
GPU is still worth, `type_pressure` which GPU types to keep for pods that take no other. `plugin` puts them together.
"""
