"""Function: operations with a user-defined backward, called eagerly or inside a transform."""
