"""Where metrics go besides the run folder."""
