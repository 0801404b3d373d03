"""Lines that a finding names besides those that ran: found in the source, from lines that did."""
