"""Many runs: several policies, parameters and seeds, in processes of this machine or on a Dask cluster, resumable."""
