"""What `check` has observed, as frozen records: what the evidence yields and the rules judge."""
