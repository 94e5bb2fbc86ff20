"""An embedded, simulated core that speaks Livestatus: a test bench and a demo, not a core."""
