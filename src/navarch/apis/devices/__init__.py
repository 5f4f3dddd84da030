"""Claims on devices as the API has them: allocations, and requests that stand for extended resources."""
