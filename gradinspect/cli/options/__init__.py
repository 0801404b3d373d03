"""What a command line says: options that verbs share, and the settings of a project."""
