"""What can be known to go wrong before anything is spent."""
