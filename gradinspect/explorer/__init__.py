"""The explorer: a graph on a terminal's whole screen. The only folder that imports textual."""
