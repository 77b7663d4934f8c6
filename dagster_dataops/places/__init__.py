"""Where files are: in folders of this machine, and in buckets of object stores.

A location is the path of a file, or a `BucketFile`. Both are opened by `opening`, and read by byte
ranges. Only this package knows object stores.
"""
