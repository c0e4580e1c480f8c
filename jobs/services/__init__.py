"""One instance on one machine: its lock, its Valkey, and the supervisor of its processes."""
