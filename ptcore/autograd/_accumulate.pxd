cpdef object rule_of(int op)
cpdef object accumulate_leaf(object leaf, object gradient, bint create_graph, bint steal)
cpdef object seed_like(object t)
