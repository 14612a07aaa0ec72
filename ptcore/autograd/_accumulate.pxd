cpdef object rule_of(int op)
cpdef object accumulate_leaf(object leaf, object gradient, bint create_graph, int owned)
cpdef object scalar_seed(object t)
cpdef int hooked_leaves() noexcept
cpdef object producer(object t)
