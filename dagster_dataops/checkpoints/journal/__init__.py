"""The files of an unfinished run: one journal and its segments.

The format of journals is known in this folder alone: other packages use `journal_writer` and
`journal_reader`.
"""
