"""Every public function × its keywords × every form of a call × every setting it is called in."""
