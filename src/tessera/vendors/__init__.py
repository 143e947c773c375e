"""Vendors: the catalogue as files, the few rules that data cannot say, and the backends that find cards.

Here live what a vendor calls its resources, how its containers are set up and how its cards are discovered. What a
vendor file may hold is `model.catalogue`; what decides about cards belongs in `engine` and knows no vendor by name.
"""
