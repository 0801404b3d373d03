"""Keep the files of a program as they were before a run whose values are made up, or whose steps are few.

NOTE [Files are put back]
`fit` and `plan` run a training program to see its memory, and what it writes then is worth nothing: a loss of 1, or
weights after two steps. It must not take the place of results. So before the program opens a file for writing, moves or
removes it, the file is renamed, out of the way, and the program gets a copy or an empty file in its place; a journal
says how all this is undone. The file itself is never written to: its time, owner and links stay, and a process that has
it open goes on with it. Python announces each such call of any library (PEP 578), so nothing is patched. What is not
seen: files that a library opens in C or Rust without Python, and other programs that are started.

The process that began it undoes the journal, the last entry first, each time a run has ended, and at its own end. If it
is killed, a small process that waits for that does it: `undo.py`, run as a script; if that is killed as well, the next
command does. What another program has put in the place of a file meanwhile is left, and the file is named. Several
commands at once, such as the ranks of a job, know each other's journals: what one has put in a file's place is not
the original for the others, and the last one that uses it puts the original back.
"""
