"""From the raw data set to a cleaned catalogue, its splits and what is wrong with it."""
