"""Changes that could start a job: what the user or an administrator can change, each tried."""
