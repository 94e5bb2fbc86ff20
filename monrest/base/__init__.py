"""What every room may use: values, errors, names, clocks, threads, the log."""
