"""What goes into each image. A recipe names its parts; how parts become an image is not its concern."""
