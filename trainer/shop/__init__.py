"""The shop: one state machine, its catalogues, its search and its score."""
