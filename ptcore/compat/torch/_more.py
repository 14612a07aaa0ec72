"""Names in modules of PyTorch that ptcore has in another module, under another name, or not at all."""
__all__ = ["MORE"]

_HERE = "ptcore.compat.torch"
_NN, _OTHER, _PIPES = f"{_HERE}._nn_helpers", f"{_HERE}._helpers", "torch.utils.data.datapipes"
_FUNCTORCH = f"{_HERE}._functorch"
_OPTIM = ("ParamsT _params_doc _foreach_doc _fused_doc _capturable_doc _differentiable_doc "
          "_maximize_doc _use_grad_for_differentiable _get_value _to_scalar _stack_if_compiling "
          "_default_to_fused_or_foreach _disable_dynamo_if_unsupported _view_as_real _get_scalar_dtype "
          "_device_dtype_check_for_fused _get_capturable_supported_devices")

# Path below torch -> module of ptcore -> names there, each as ``name`` or ``name=its name``. Names without a module are
# absent: programs can import them, and they raise where they are used.
MORE = {
    "_C": {None: "Graph Node Value"},
    "_C._functorch": {None: "is_batchedtensor get_unwrapped maybe_get_level _unwrap_for_grad"},
    "_classes": {f"{_HERE}._names": "classes"},
    "_dynamo.backends.registry": {"ptcore.compiler": "list_backends register_backend"},
    "_dynamo.external_utils": {"ptcore.compiler": "is_compiling"},
    "_dynamo.utils": {_OTHER: "counters"},
    "_functorch.eager_transforms": {"ptcore.func": "functionalize hessian jacfwd jacrev jvp linearize vjp"},
    "_functorch.make_functional": {
        _FUNCTORCH: "combine_state_for_ensemble make_functional make_functional_with_buffers"},
    "_guards": {None: "CompileId detect_fake_mode"},
    "_tensor": {f"{_HERE}._utils": "_rebuild_from_type_v2", None: "_convert"},
    "_tensor_str": {_OTHER: "_str"},
    "amp.grad_scaler": {None: "_MultiDeviceReplicator"},
    "autograd.function": {_OTHER: "InplaceFunction", None: "BackwardCFunction NestedIOFunction _SingleLevelFunction"},
    "autograd.functional": {None: "_as_tuple"},
    "autograd.gradcheck": {None: "get_analytical_jacobian get_numerical_jacobian"},
    "autograd.profiler_util": {None: "_format_memory _format_time"},
    "backends.cuda": {"ptcore.nn.attention": "SDPBackend",
                      None: "SDPAParams can_use_efficient_attention can_use_flash_attention preferred_linalg_library"},
    "compiler": {None: "wrap_numpy"},
    "cuda._utils": {f"{_HERE}._utils": "_get_device_index"},
    "cuda.amp.autocast_mode": {None: "_cast"},
    "distributions.dirichlet": {None: "_Dirichlet"},
    "distributions.gamma": {None: "_standard_gamma"},
    "distributions.kl": {None: "_kl_normal_normal"},
    "func": {_OTHER: "replace_all_batch_norm_modules_"},
    "fx": {None: "CodeGen ProxyableClassMeta"},
    "fx._symbolic_trace": {None: "_assert_is_none"},
    "fx.experimental.proxy_tensor": {None: "ProxyTorchDispatchMode"},
    "fx.graph": {None: "CodeGen _PyTreeCodeGen _PyTreeInfo"},
    "fx.graph_module": {None: "_EvalCacheLoader _WrappedCall _copy_attr"},
    "fx.node": {"ptcore.fx.node": "_get_qualified_name=name_of_function", _OTHER: "Argument=_Any Target=_Any"},
    "hub": {"ptcore.utils.model_zoo": "tqdm"},
    "jit.annotations": {None: "get_signature"},
    "multiprocessing.reductions": {None: "StorageWeakRef rebuild_cuda_tensor"},
    "autograd.grad_mode": {
        f"{_HERE}._contextlib": "_DecoratorContextManager _NoParamDecoratorContextManager"},
    "nn.functional": {
        _NN: "_get_softmax_dim _list_with_default _verify_batch_size _none_or_dtype _canonical_mask _in_projection "
             "_in_projection_packed",
        "ptcore.nn.modules.utils": "_single _pair _triple",
        "ptcore.overrides": "has_torch_function has_torch_function_unary has_torch_function_variadic "
                            "handle_torch_function"},
    "nn.init": {
        _NN: "_no_grad_uniform_ _no_grad_normal_ _no_grad_trunc_normal_ _no_grad_fill_ _no_grad_zero_"},
    "nn.modules.activation": {
        "ptcore.nn": "CELU Hardshrink Hardsigmoid Hardswish Hardtanh MultiheadAttention PReLU RReLU ReLU6 SELU "
                     "Softshrink Tanhshrink Threshold"},
    "nn.modules.batchnorm": {
        "ptcore.nn.modules.batchnorm": "_NormBase=_ChannelNorm",
        "ptcore.nn": "LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d Module Parameter",
        "ptcore.nn.modules.lazy": "_LazyNormBase=_LazyNorm"},
    "nn.modules.container": {_NN: "_addindent"},
    "nn.modules.conv": {
        "ptcore.nn.modules.utils": "_single _pair _triple _reverse_repeat_tuple",
        f"{_HERE}.common_types": "_size_1_t _size_2_t _size_3_t",
        "ptcore.nn": "LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d"},
    "nn.modules.dropout": {"ptcore.nn.modules.dropout": "_DropoutNd=_Dropout"},
    "nn.modules.instancenorm": {"ptcore.nn": "LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d"},
    "nn.modules.linear": {"ptcore.nn": "LazyLinear"},
    "nn.modules.normalization": {_OTHER: "_shape_t"},
    "nn.modules.module": {
        _NN: "_addindent", f"{_HERE}.common_types": "T", "ptcore.nn.modules._state_dict": "_EXTRA_STATE_KEY_SUFFIX"},
    "nn.modules.padding": {
        _NN: "_ReflectionPadNd _ReplicationPadNd",
        "ptcore.nn.modules.padding": "_CircularPadNd=_CircularPad _ConstantPadNd=_ConstantPad"},
    "nn.modules.pooling": {
        _NN: "_AvgPoolNd",
        "ptcore.nn.modules.pooling": "_MaxPoolNd=_MaxPool _MaxUnpoolNd=_MaxUnpool _LPPoolNd=_LPPool "
                                     "_AdaptiveMaxPoolNd=_AdaptiveMaxPool _AdaptiveAvgPoolNd=_AdaptiveAvgPool"},
    "nn.modules.rnn": {
        _NN: "apply_permutation _apply_permutation=apply_permutation", "ptcore.nn.utils.rnn": "PackedSequence"},
    "nn.modules.transformer": {
        _NN: "_get_clones _get_activation_fn _generate_square_subsequent_mask _get_seq_len _detect_is_causal_mask",
        "ptcore.nn.init": "xavier_uniform_"},
    "nn.modules.utils": {_NN: "_list_with_default"},
    "nn.parallel.distributed": {None: "_find_tensors"},
    "nn.parallel.parallel_apply": {None: "get_a_var"},
    "nn.parallel.scatter_gather": {_OTHER: "is_namedtuple _is_namedtuple=is_namedtuple", None: "scatter_kwargs"},
    "nn.parameter": {_NN: "UninitializedTensorMixin"},
    "nn.utils.clip_grad": {
        "ptcore.nn.utils.clip_grad": "_get_total_norm=get_total_norm _clip_grads_with_norm_=clip_grads_with_norm_"},
    "nn.utils.convert_parameters": {None: "_check_param_device"},
    "nn.utils.stateless": {None: "_reparametrize_module"},
    "optim": {"torch.optim.sparse_adam": "SparseAdam"},
    "optim.lr_scheduler": {_OTHER: "_enable_get_lr_call EPOCH_DEPRECATION_WARNING _to_scalar",
                           "ptcore.optim": "Optimizer"},
    "optim.optimizer": {_OTHER: _OPTIM + " StateDict=_Any"},
    "optim.adam": {_OTHER: _OPTIM, "ptcore.optim": "Optimizer", None: "adam"},
    **{f"optim.{name}": {None: name} for name in (
        "adadelta", "adagrad", "adamax", "adamw", "asgd", "nadam", "radam", "rmsprop", "rprop", "sgd")},
    "overrides": {None: "_get_current_function_mode_stack get_testing_overrides"},
    "serialization": {
        _OTHER: "SourceChangeWarning",
        None: "_is_zipfile default_restore_location normalize_storage_type validate_cuda_device"},
    "storage": {f"{_HERE}._utils": "_load_from_bytes"},
    "utils._pytree": {
        "ptcore.utils._pytree": "_register_pytree_node=register_pytree_node",
        _OTHER: "is_namedtuple is_namedtuple_instance=is_namedtuple arg_tree_leaves Context=_Any FlattenFunc=_Any "
                "UnflattenFunc=_Any"},
    "utils._python_dispatch": {None: "return_and_correct_aliasing"},
    "utils.checkpoint": {_OTHER: "detach_variable check_backward_validity"},
    "utils.data": {
        _OTHER: "_DatasetKind",
        f"{_PIPES}.datapipe": "DataChunk DFIterDataPipe IterDataPipe MapDataPipe",
        f"{_PIPES}._decorator": "argument_validation functional_datapipe guaranteed_datapipes_determinism "
                                "non_deterministic runtime_validation runtime_validation_disabled"},
    "utils.data._utils": {_OTHER: "MP_STATUS_CHECK_INTERVAL"},
    "utils.data._utils.worker": {None: "_worker_loop"},
    "utils.tensorboard": {None: "FileWriter"},
    "utils.tensorboard._convert_np": {"ptcore.utils._summaries": "make_np=array_of"},
    "utils.data._utils.collate": {
        "ptcore.utils.data._utils.collate": "collate_tensor_fn=_collate_tensors collate_float_fn=_collate_floats "
                                            "collate_int_fn=_collate_ints collate_str_fn=_collate_text",
        _OTHER: "collate_numpy_array_fn collate_numpy_scalar_fn default_collate_err_msg_format"},
    "utils.data.dataloader": {_OTHER: "_DatasetKind", f"{_PIPES}.datapipe": "IterDataPipe MapDataPipe"},
}
