"""Work that takes seconds of CPU: trials, and recorded cycles decided again. It runs in processes of its own."""
