"""What becomes of an object when a patch is applied to it: JSON patch, merge patch, strategic merge.

Pure: a document and a patch come in, a document of its own or a refusal goes out.
"""
