"""custom_vjp and custom_jvp: functions with user-defined derivative rules, as in JAX."""
