"""Where the files of a node are: in its folder, or in a bucket.

`NodePlace` is the port; `placement.place_of` chooses its implementation by the bucket that the
folder of a node has, and nothing above asks which it is. In a bucket the folder of the node is a
working copy: nothing in it counts that the bucket does not hold, and it need not hold everything.
"""
