"""GPU pools, admission, grants and leases. Only the allocator writes grants."""
