"""Lists of nodes and other rows: which are shown, in which order, and with which attributes."""
