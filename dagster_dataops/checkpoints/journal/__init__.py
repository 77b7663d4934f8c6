"""The files of an unfinished run: one journal and its segments.

Only this folder knows the format of journals: other packages use `journal_writer` and
`journal_reader`.
"""
