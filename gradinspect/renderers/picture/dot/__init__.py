"""A picture as DOT, the language of Graphviz."""
