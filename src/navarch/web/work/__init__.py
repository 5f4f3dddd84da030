"""Work that takes seconds of CPU, in processes of its own: trials, forecasts of start times, and recorded cycles decided again."""
