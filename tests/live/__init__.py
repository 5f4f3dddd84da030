"""The live scheduler over real HTTP: against the embedded API server, and against kube-apiserver where one can be had."""
