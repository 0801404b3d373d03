"""Pictures too large for Graphviz, laid out in rows."""
