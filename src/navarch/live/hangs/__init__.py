"""What ends a cycle that takes too long, or a process whose interpreter is held, and what the next process learns from it."""
