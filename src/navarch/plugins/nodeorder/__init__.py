"""kube-scheduler's scores, each a vectorised rule over all nodes, and the plugin that weighs them."""
