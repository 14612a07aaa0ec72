cpdef object rule_of(int op)
cpdef object accumulate_leaf(object leaf, object gradient, bint create_graph, int owned)
cpdef object of_shape(object leaf, object gradient)
cpdef object plain_seed(object t, object g)
cpdef bint has_hooks(object leaf) noexcept
cpdef bint is_recorded() noexcept
cpdef void record_rule(bint on) noexcept
cpdef object producer(object t)
