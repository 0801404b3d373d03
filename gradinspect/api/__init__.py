"""The library: files, the figures of a graph, how records show themselves; `live` is the half that needs torch."""
