"""Pictures as DOT, the Graphviz language."""
