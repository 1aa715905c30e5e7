"""Functions of images: resampling, padding, unfolding, pixel shuffles."""
