"""kube-scheduler's filters, each a vectorised rule over all nodes, and the plugin that switches them."""
