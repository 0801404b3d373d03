"""Callbacks for trainers, one file each; each needs its trainer, and nothing else imports them."""
