"""The parts for every room: values, errors, names, clocks, threads, the log."""
