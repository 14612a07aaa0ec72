"""The names of what PyTorch has and ptcore has not, by module; `_absent` makes modules of them.

A word of a module is one name. Behind ``=`` stand the attributes of a class that programs write down, such as the
members of an enumeration.
"""
from ptcore.compat.torch._absent_distributed import DISTRIBUTED

# Part of PyTorch -> what is said of it. The first that a path begins with counts, so longer ones stand first.
WHY = {
    "distributed": "ptcore has no distributed training",
    "onnx": "ptcore writes no ONNX files",
    "export": "ptcore has no exported programs",
    "_export": "ptcore has no exported programs",
    "sparse": "ptcore has no sparse tensors",
    "ao": "ptcore has no quantized layers",
    "quantization": "ptcore has no quantized layers",
    "nn.quantized": "ptcore has no quantized layers",
    "nn.quantizable": "ptcore has no quantized layers",
    "nn.intrinsic": "ptcore has no quantized layers",
    "nn.qat": "ptcore has no quantized layers",
    "jit.quantized": "ptcore has no quantized layers",
    "package": "ptcore has no packages of code and weights; save state dicts, and install the code",
    "xpu": "ptcore has no backend for Intel GPUs",
    "mps": "ptcore has no backend for Apple's Metal",
    "mtia": "ptcore has no backend for MTIA",
    "nested": "ptcore has no nested tensors",
    "nn.attention.varlen": "ptcore has no attention over packed sequences",
    "utils.cpp_extension": "PyTorch's C++ extensions do not fit ptcore; its guide says how kernels are added",
    "utils.hipify": "PyTorch's C++ extensions do not fit ptcore; its guide says how kernels are added",
    "utils.data.datapipes": "ptcore has no data pipes; datasets and samplers are in utils.data",
    "utils.data.graph": "ptcore has no data pipes; datasets and samplers are in utils.data",
    "utils": "ptcore has no such tool",
    "optim": "ptcore has no such optimiser or average",
    "autograd": "ptcore has not this part of PyTorch's profiler",
    "nn": "ptcore has not this part of PyTorch's layers",
    "_inductor": "ptcore compiles without Inductor",
    "_dynamo": "ptcore captures programs without Dynamo",
    "cuda": "ptcore has not this part of PyTorch's CUDA interface",
    "fx": "ptcore has not this part of PyTorch's graphs",
    "jit": "ptcore has not this part of PyTorch's scripts",
    "testing._internal": "PyTorch's own test tools are not part of ptcore",
    "": "this is a private part of PyTorch, which ptcore has not",
}
# Questions about the machine and the process, whose answer is False; ``is_available`` is one everywhere.
FALSE = {f"torch.{name}" for name in (
    "distributed.is_initialized", "distributed.is_torchelastic_launched", "distributed.is_nccl_available",
    "distributed.is_gloo_available", "distributed.is_mpi_available", "distributed.is_ucc_available",
    "distributed.is_xccl_available", "distributed.is_backend_available",
    "distributed.distributed_c10d.is_initialized", "distributed.distributed_c10d.is_nccl_available",
    "distributed.distributed_c10d.is_gloo_available", "distributed.distributed_c10d.is_mpi_available",
    "onnx.is_in_onnx_export", "xpu.is_initialized", "xpu.is_bf16_supported", "mtia.is_initialized",
    "mtia.is_bf16_supported", "utils.cpp_extension.is_ninja_available", "_subclasses.fake_tensor.is_fake",
    "_dynamo.external_utils.is_compiling", "_dynamo.utils.is_compile_supported")}
# Numbers of devices.
ZERO = {"torch.xpu.device_count", "torch.mps.device_count", "torch.mtia.device_count"}
NONE = {"torch.utils.cpp_extension.CUDA_HOME", "torch.utils.cpp_extension.ROCM_HOME"}
# What decorates a definition and means nothing here.
MARKERS = {f"torch.{name}" for name in (
    "distributed.elastic.multiprocessing.errors.record", "distributed.rpc.functions.async_execution",
    "export.register_dataclass", "onnx.symbolic_helper.parse_args", "onnx.register_custom_op_symbolic")}
# Classes that programs derive from without asking anything of them.
BASES = {"torch.distributed.checkpoint.stateful.Stateful", "torch.distributed.algorithms.join.Joinable",
         "torch.distributed.algorithms.Joinable"}

ABSENT = {
    **DISTRIBUTED,
    "onnx": """
        ExportableModule InputObserver ONNXProgram OnnxExporterError
        OperatorExportTypes=ONNX,ONNX_ATEN,ONNX_ATEN_FALLBACK,ONNX_FALLTHROUGH
        TensorProtoDataType=BFLOAT16,BOOL,COMPLEX128,COMPLEX64,DOUBLE,FLOAT,FLOAT16,FLOAT8E4M3FN,FLOAT8E4M3FNUZ
        TrainingMode=EVAL,PRESERVE,TRAINING export is_in_onnx_export register_custom_op_symbolic
        symbolic_opset12=dropout unregister_custom_op_symbolic
    """,
    "onnx.errors": "OnnxExporterWarning SymbolicValueError UnsupportedOperatorError",
    "onnx.operators": "reshape_from_tensor_shape shape_as_tensor",
    "onnx.ops": "aten_decompositions attention rotary_embedding symbolic symbolic_multi_out",
    "onnx.symbolic_helper": """
        _get_const _get_tensor_rank _get_tensor_sizes _is_none _is_tensor _is_value _maybe_get_scalar
        _onnx_opset_unsupported_detailed _onnx_unsupported _repeat_interleave_split_helper _reshape_helper
        cast_pytorch_to_onnx parse_args scalar_type_to_onnx
    """,
    "onnx.symbolic_opset9": "expand masked_fill softmax unsqueeze",
    "onnx.symbolic_opset11": "select squeeze unsqueeze",
    "onnx.utils": "",
    "onnx.verification": "VerificationInfo verify_onnx_program",
    "export": """
        AdditionalInputs Constraint CustomDecompTable Dim=AUTO ExportBackwardSignature ExportGraphSignature
        ExportedProgram FlatArgsAdapter ModuleCallEntry ModuleCallSignature ShapesCollection UnflattenedModule
        default_decompositions dims draft_export export load register_dataclass save unflatten
    """,
    "export.dynamic_shapes": "AdditionalInputs Constraint Dim dims refine_dynamic_shapes_from_suggested_fixes",
    "export.exported_program": "ExportedProgram ModuleCallEntry ModuleCallSignature default_decompositions",
    "export.graph_signature": """
        ConstantArgument CustomObjArgument ExportBackwardSignature ExportGraphSignature
        InputKind=BUFFER,CONSTANT_TENSOR,CUSTOM_OBJ,PARAMETER,TOKEN,USER_INPUT InputSpec
        OutputKind=BUFFER_MUTATION,GRADIENT_TO_PARAMETER,LOSS_OUTPUT,PARAMETER_MUTATION,TOKEN,USER_INPUT_MUTATION
        OutputSpec SymBoolArgument SymFloatArgument SymIntArgument TensorArgument
    """,
    "export.passes": "move_to_device_pass",
    "export.unflatten": """
        FlatArgsAdapter InterpreterModule InterpreterModuleDispatcher UnflattenedModule unflatten
    """,
    "export.pt2_archive": "PT2ArchiveReader PT2ArchiveWriter is_pt2_package",
    "export.experimental": "",
    "sparse": """
        DoubleTensor FloatTensor HalfTensor SparseSemiStructuredTensor SparseSemiStructuredTensorCUSPARSELT
        SparseSemiStructuredTensorCUTLASS addmm as_sparse_gradcheck check_sparse_tensor_invariants log_softmax mm
        softmax solve spdiags sum to_sparse_semi_structured
    """,
    "ao": "",
    "ao.nn": "",
    "ao.nn.intrinsic": """
        BNReLU2d BNReLU3d ConvAdd2d ConvAddReLU2d ConvBn1d ConvBn2d ConvBn3d ConvBnReLU1d ConvBnReLU2d ConvBnReLU3d
        ConvReLU1d ConvReLU2d ConvReLU3d LinearBn1d LinearLeakyReLU LinearReLU LinearTanh
    """,
    "ao.nn.intrinsic.qat": """
        ConvBn1d ConvBn2d ConvBn3d ConvBnReLU1d ConvBnReLU2d ConvBnReLU3d ConvReLU1d ConvReLU2d ConvReLU3d
        LinearBn1d LinearReLU freeze_bn_stats update_bn_stats
    """,
    "ao.nn.intrinsic.quantized": """
        BNReLU2d BNReLU3d ConvAdd2d ConvAddReLU2d ConvReLU1d ConvReLU2d ConvReLU3d LinearLeakyReLU LinearReLU
        LinearTanh
    """,
    "ao.nn.qat": "Conv1d Conv2d Conv3d Embedding EmbeddingBag Linear",
    "ao.nn.quantizable": "LSTM LSTMCell MultiheadAttention",
    "ao.nn.quantized": """
        BatchNorm2d BatchNorm3d Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d DeQuantize
        Dropout ELU Embedding EmbeddingBag FXFloatFunctional FloatFunctional GroupNorm Hardswish InstanceNorm1d
        InstanceNorm2d InstanceNorm3d LSTM LayerNorm LeakyReLU Linear MultiheadAttention PReLU QFunctional Quantize
        ReLU6 Sigmoid Softmax
    """,
    "ao.nn.quantized.dynamic": """
        Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d GRU GRUCell LSTM LSTMCell Linear
        RNNCell
    """,
    "ao.nn.quantized.functional": """
        adaptive_avg_pool2d adaptive_avg_pool3d avg_pool2d avg_pool3d celu clamp conv1d conv2d conv3d elu
        hardsigmoid hardswish hardtanh interpolate leaky_relu linear max_pool1d max_pool2d threshold upsample
        upsample_bilinear upsample_nearest
    """,
    "ao.nn.quantized.reference": """
        Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d Embedding EmbeddingBag GRU GRUCell LSTM
        LSTMCell Linear RNNCell
    """,
    "ao.nn.sparse": "",
    "ao.ns": "",
    "ao.pruning": """
        BaseScheduler BaseSparsifier CubicSL FakeSparsity LambdaSL NearlyDiagonalSparsifier WeightNormSparsifier
        fqn_to_module get_arg_info_from_tensor_fqn get_dynamic_sparse_quantized_mapping
        get_static_sparse_quantized_mapping module_to_fqn
    """,
    "ao.quantization": """
        AffineQuantizedObserverBase DeQuantStub FakeQuantize FakeQuantizeBase FixedQParamsFakeQuantize
        FixedQParamsObserver FusedMovingAvgObsFakeQuantize Granularity HistogramObserver
        MappingType=ASYMMETRIC,SYMMETRIC,SYMMETRIC_NO_CLIPPING_ERR MatchAllNode MinMaxObserver
        MovingAverageMinMaxObserver MovingAveragePerChannelMinMaxObserver NoopObserver ObserverBase
        ObserverOrFakeQuantize Pattern PerAxis PerBlock PerChannelMinMaxObserver PerGroup PerRow PerTensor PerToken
        PlaceholderObserver QConfig QConfigAny QConfigDynamic QConfigMapping QuantStub
        QuantType=DYNAMIC,QAT,STATIC,WEIGHT_ONLY QuantWrapper RecordingObserver ReuseInputObserver
        TorchAODType=INT1,INT2,INT3,INT4,INT5,INT6,INT7 UniformQuantizationObserverBase
        ZeroPointDomain=FLOAT,INT,NONE add_quant_dequant convert convert_dynamic_jit convert_jit
        default_affine_fixed_qparams_fake_quant default_affine_fixed_qparams_observer default_debug_observer
        default_dynamic_fake_quant default_dynamic_quant_observer default_embedding_fake_quant
        default_embedding_fake_quant_4bit default_eval_fn default_fake_quant
        default_fixed_qparams_range_0to1_fake_quant default_fixed_qparams_range_0to1_observer
        default_fixed_qparams_range_neg1to1_fake_quant default_fixed_qparams_range_neg1to1_observer
        default_float_qparams_observer default_float_qparams_observer_4bit default_fused_act_fake_quant
        default_fused_per_channel_wt_fake_quant default_fused_wt_fake_quant default_histogram_fake_quant
        default_histogram_observer default_observer default_per_channel_weight_fake_quant
        default_per_channel_weight_observer default_placeholder_observer default_reuse_input_observer
        default_symmetric_fixed_qparams_fake_quant default_symmetric_fixed_qparams_observer
        default_weight_fake_quant default_weight_observer disable_fake_quant disable_observer enable_fake_quant
        enable_observer fuse_conv_bn fuse_conv_bn_jit fuse_conv_bn_relu fuse_convtranspose_bn fuse_linear_bn
        fuse_modules fuse_modules_qat fused_per_channel_wt_fake_quant_range_neg_127_to_127
        fused_wt_fake_quant_range_neg_127_to_127 get_block_size get_combined_dict
        get_default_compare_output_module_list get_default_custom_config_dict
        get_default_dynamic_quant_module_mappings get_default_dynamic_sparse_quant_module_mappings
        get_default_float_to_quantized_operator_mappings get_default_qat_module_mappings get_default_qat_qconfig
        get_default_qat_qconfig_dict get_default_qat_qconfig_mapping get_default_qconfig get_default_qconfig_dict
        get_default_qconfig_mapping get_default_qconfig_propagation_list get_default_static_quant_module_mappings
        get_default_static_quant_reference_module_mappings get_default_static_sparse_quant_module_mappings
        get_dynamic_quant_module_class get_embedding_qat_module_mappings get_embedding_static_quant_module_mappings
        get_fuser_method get_fuser_method_new get_observer_state_dict get_quantized_operator
        get_static_quant_module_class load_observer_state_dict no_observer_set
        per_channel_weight_observer_range_neg_127_to_127 prepare prepare_dynamic_jit prepare_jit prepare_qat
        propagate_qconfig_ qconfig_equals quantize quantize_dynamic quantize_dynamic_jit quantize_jit quantize_qat
        script_qconfig script_qconfig_dict swap_module weight_observer_range_neg_127_to_127
    """,
    "ao.quantization.backend_config": """
        BackendConfig BackendPatternConfig DTypeConfig DTypeWithConstraints
        ObservationType=
        get_executorch_backend_config get_fbgemm_backend_config get_native_backend_config
        get_native_backend_config_dict get_onednn_backend_config get_qnnpack_backend_config
        get_tensorrt_backend_config get_tensorrt_backend_config_dict
    """,
    "ao.quantization.fake_quantize": """
        FakeQuantize FakeQuantizeBase FixedQParamsFakeQuantize FusedMovingAvgObsFakeQuantize
        default_affine_fixed_qparams_fake_quant default_dynamic_fake_quant default_embedding_fake_quant
        default_embedding_fake_quant_4bit default_fake_quant default_fixed_qparams_range_0to1_fake_quant
        default_fixed_qparams_range_neg1to1_fake_quant default_fused_act_fake_quant
        default_fused_per_channel_wt_fake_quant default_fused_wt_fake_quant default_histogram_fake_quant
        default_per_channel_weight_fake_quant default_symmetric_fixed_qparams_fake_quant default_weight_fake_quant
        disable_fake_quant disable_observer enable_fake_quant enable_observer
        fused_per_channel_wt_fake_quant_range_neg_127_to_127 fused_wt_fake_quant_range_neg_127_to_127
    """,
    "ao.quantization.fuse_modules": "fuse_known_modules fuse_modules fuse_modules_qat",
    "ao.quantization.observer": """
        AffineQuantizedObserverBase FixedQParamsObserver Granularity HistogramObserver
        MappingType=ASYMMETRIC,SYMMETRIC,SYMMETRIC_NO_CLIPPING_ERR MinMaxObserver MovingAverageMinMaxObserver
        MovingAveragePerChannelMinMaxObserver NoopObserver ObserverBase PerAxis PerBlock PerChannelMinMaxObserver
        PerGroup PerRow PerTensor PerToken PlaceholderObserver RecordingObserver ReuseInputObserver
        TorchAODType=INT1,INT2,INT3,INT4,INT5,INT6,INT7 UniformQuantizationObserverBase
        ZeroPointDomain=FLOAT,INT,NONE default_affine_fixed_qparams_observer default_debug_observer
        default_dynamic_quant_observer default_fixed_qparams_range_0to1_observer
        default_fixed_qparams_range_neg1to1_observer default_float_qparams_observer
        default_float_qparams_observer_4bit default_histogram_observer default_observer
        default_per_channel_weight_observer default_placeholder_observer default_reuse_input_observer
        default_symmetric_fixed_qparams_observer default_weight_observer get_block_size get_observer_state_dict
        load_observer_state_dict per_channel_weight_observer_range_neg_127_to_127
        weight_observer_range_neg_127_to_127
    """,
    "ao.quantization.pt2e": "",
    "ao.quantization.qconfig": """
        QConfig QConfigAny QConfigDynamic default_activation_only_qconfig default_debug_qconfig
        default_dynamic_qat_qconfig default_dynamic_qconfig default_embedding_qat_qconfig
        default_embedding_qat_qconfig_4bit default_per_channel_qconfig
        default_per_channel_symmetric_qnnpack_qat_qconfig default_per_channel_symmetric_qnnpack_qconfig
        default_qat_qconfig default_qat_qconfig_v2 default_qconfig default_quint8_weight_qconfig
        default_reuse_input_qconfig default_symmetric_qnnpack_qat_qconfig default_symmetric_qnnpack_qconfig
        default_weight_only_qconfig float16_dynamic_qconfig float16_static_qconfig float_qparams_weight_only_qconfig
        float_qparams_weight_only_qconfig_4bit get_default_qat_qconfig get_default_qat_qconfig_dict
        get_default_qconfig get_default_qconfig_dict per_channel_dynamic_qconfig qconfig_equals
    """,
    "ao.quantization.qconfig_mapping": """
        QConfigMapping get_default_qat_qconfig_mapping get_default_qconfig_mapping
    """,
    "ao.quantization.quantize": """
        add_quant_dequant convert get_default_custom_config_dict prepare prepare_qat propagate_qconfig_ quantize
        quantize_dynamic quantize_qat swap_module
    """,
    "ao.quantization.quantize_fx": """
        BackendConfig ConvertCustomConfig FuseCustomConfig ObservedGraphModule PrepareCustomConfig QConfigMapping
        QuantizationTracer ScopeContextManager attach_preserved_attrs_to_model convert convert_fx
        convert_to_reference_fx fuse fuse_fx get_custom_module_class_keys get_skipped_module_name_and_classes
        get_tensorrt_backend_config prepare prepare_fx prepare_qat_fx
    """,
    "ao.quantization.quantizer": "",
    "ao.quantization.stubs": "DeQuantStub QuantStub QuantWrapper",
    "ao.quantization.utils": """
        DEPRECATION_WARNING MatchAllNode NodePattern Pattern activation_dtype activation_is_dynamically_quantized
        activation_is_int32_quantized activation_is_int8_quantized activation_is_statically_quantized
        calculate_qmin_qmax check_min_max_valid check_node determine_qparams get_combined_dict
        get_fqn_to_example_inputs get_qconfig_dtypes get_qparam_dict get_quant_type get_swapped_custom_module_class
        getattr_from_fqn has_no_children_ignoring_parametrizations is_per_channel is_per_tensor
        op_is_int8_dynamically_quantized to_underlying_dtype validate_qmin_qmax weight_dtype weight_is_quantized
        weight_is_statically_quantized
    """,
    "quantization": """
        DeQuantStub HistogramObserver ObserverBase QConfig QuantStub QuantType=DYNAMIC,QAT,STATIC,WEIGHT_ONLY
        QuantWrapper WeightObserver _convert_ondevice_dynamic_jit _prepare_ondevice_dynamic_jit
        _quantize_ondevice_dynamic_jit add_quant_dequant convert default_dynamic_qconfig default_eval_fn
        default_fake_quant default_fixed_qparams_range_0to1_fake_quant
        default_fixed_qparams_range_neg1to1_fake_quant default_histogram_fake_quant default_observer
        default_per_channel_weight_fake_quant default_per_channel_weight_observer default_placeholder_observer
        default_qat_qconfig default_qconfig default_weight_fake_quant default_weight_observer
        float16_dynamic_qconfig float_qparams_weight_only_qconfig fuse_modules
        get_default_compare_output_module_list get_default_dynamic_quant_module_mappings
        get_default_qat_module_mappings get_default_qconfig_propagation_list
        get_default_static_quant_module_mappings get_fuser_method get_quantized_operator
        get_static_quant_module_class prepare prepare_qat propagate_qconfig_ quantize quantize_dynamic
        quantize_dynamic_jit quantize_jit quantize_qat swap_module
    """,
    "quantization.observer": "HistogramObserver MinMaxObserver PerChannelMinMaxObserver",
    "quantization.fake_quantize": "",
    "quantization.quantize": "",
    "quantization.quantize_fx": "",
    "quantization.fuse_modules": "",
    "quantization.qconfig": "default_dynamic_qconfig per_channel_dynamic_qconfig",
    "quantization.stubs": "",
    "package": """
        Directory EmptyMatchError GlobGroup Importer ObjMismatchError ObjNotFoundError OrderedImporter
        PackageExporter PackageImporter PackagingError is_from_package sys_importer
    """,
    "package.importer": "Importer ObjMismatchError ObjNotFoundError OrderedImporter",
    "package.package_exporter": """
        EmptyMatchError PackageExporter PackagingError
        PackagingErrorReason=DENIED,IS_EXTENSION_MODULE,MOCKED_BUT_STILL_USED,NO_ACTION,NO_DUNDER_FILE
    """,
    "package.package_importer": "PackageImporter",
    "xpu": """
        Event MemPool Stream StreamContext XPUGraph XPUPluggableAllocator can_device_access_peer
        change_current_allocator clock_rate current_device current_stream default_generators device device_count
        device_memory_used device_of empty_cache get_arch_list get_device_capability get_device_name
        get_device_properties get_gencode_flags get_per_process_memory_fraction get_rng_state get_rng_state_all
        get_stream_from_external graph graph_pool_handle init initial_seed is_available is_bf16_supported
        is_current_stream_capturing is_initialized is_tf32_supported make_graphed_callables manual_seed
        manual_seed_all max_memory_allocated max_memory_reserved mem_get_info memory_allocated memory_reserved
        memory_snapshot memory_stats memory_stats_as_nested_dict memory_usage power_draw
        reset_accumulated_memory_stats reset_peak_memory_stats seed seed_all set_device
        set_per_process_memory_fraction set_rng_state set_rng_state_all set_stream stream synchronize temperature
        use_mem_pool utilization
    """,
    "xpu.memory": """
        MemPool XPUPluggableAllocator change_current_allocator empty_cache get_per_process_memory_fraction
        max_memory_allocated max_memory_reserved mem_get_info memory_allocated memory_reserved memory_snapshot
        memory_stats memory_stats_as_nested_dict reset_accumulated_memory_stats reset_peak_memory_stats
        set_per_process_memory_fraction use_mem_pool
    """,
    "xpu.random": """
        get_rng_state get_rng_state_all initial_seed manual_seed manual_seed_all seed seed_all set_rng_state
        set_rng_state_all
    """,
    "xpu.streams": "Event Stream",
    "mps": """
        Event compile_shader current_allocated_memory device_count driver_allocated_memory empty_cache get_rng_state
        is_available load_metallib manual_seed recommended_max_memory seed set_per_process_memory_fraction
        set_rng_state synchronize
    """,
    "mps.event": "Event",
    "mps.profiler": "is_capturing_metal is_metal_capture_enabled metal_capture profile start stop",
    "mtia": """
        MTIAGraph attach_out_of_memory_observer current_device current_stream default_stream device device_count
        empty_cache get_device_capability get_device_properties get_rng_state get_rng_state_all graph
        graph_pool_handle init initial_seed is_available is_bf16_supported is_initialized manual_seed
        manual_seed_all max_memory_allocated memory_allocated memory_stats record_memory_history
        reset_peak_memory_stats seed seed_all set_device set_rng_state set_rng_state_all set_stream snapshot stream
        synchronize
    """,
    "mtia.memory": "max_memory_allocated memory_allocated memory_stats reset_peak_memory_stats",
    "nested": "as_nested_tensor masked_select narrow nested_tensor nested_tensor_from_jagged to_padded_tensor",
    "_export": "ExportDynamoConfig aot_compile aot_compile_warning aot_load",
    "_inductor": """
        compile cudagraph_mark_step_begin cudagraph_trees=_use_cuda_memory_pool_manager list_mode_options
        list_options output_code=RegionalOutputCode standalone_compile
    """,
    "_inductor.codecache": "",
    "_inductor.fx_passes": """
        control_dependencies=preserve_node_ordering micro_pipeline_tp=micro_pipeline_tp_pass
        overlap_manual_scheduling=ManualOverlapPreservingBucketer,ManualOverlapScheduler,manual_overlap_bucketing
        overlap_scheduling=get_group_name,is_compute_node
    """,
    "_inductor.fx_passes.bucketing": "BucketMode is_all_gather_into_tensor is_wait_tensor",
    "_inductor.utils": "count_tangents fresh_inductor_cache",
    "nativert": "",
    "numa": "",
    "utils.cpp_extension": """
        BuildExtension CUDAExtension CUDA_HOME CppExtension HIP_HOME ROCM_HOME SyclExtension _get_build_directory
        check_compiler_is_gcc check_compiler_ok_for_platform get_compiler_abi_compatibility_and_version
        get_cxx_compiler get_default_build_root include_paths is_ninja_available library_paths load load_inline
        remove_extension_h_precompiler_headers verify_ninja_availability
    """,
    "utils.mobile_optimizer": """
        LintCode=BATCHNORM,BUNDLED_INPUT,DROPOUT,REQUIRES_GRAD generate_mobile_module_lints optimize_for_mobile
    """,
    "utils.bundled_inputs": """
        InflatableArg augment_many_model_functions_with_bundled_inputs augment_model_with_bundled_inputs
        bundle_inputs bundle_large_tensor bundle_randn
    """,
    "utils.hipify": "",
    "utils.mkldnn": "MkldnnBatchNorm MkldnnConv1d MkldnnConv2d MkldnnConv3d MkldnnLinear MkldnnPrelu to_mkldnn",
    "utils.throughput_benchmark": "ExecutionStats ThroughputBenchmark format_time",
    "utils.data.datapipes": "",
    "utils.data.datapipes.iter": """
        Batcher Collator Concater Demultiplexer FileLister FileOpener Filter Forker Grouper IterableWrapper Mapper
        Multiplexer RoutedDecoder Sampler ShardingFilter Shuffler StreamReader UnBatcher Zipper
    """,
    "utils.data.datapipes.map": "Batcher Concater Mapper SequenceWrapper Shuffler Zipper",
    "utils.data.datapipes.datapipe": "DFIterDataPipe DataChunk IterDataPipe MapDataPipe",
    "utils.data.graph": "traverse traverse_dps",
    "nn.quantized": """
        BatchNorm2d BatchNorm3d Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d DeQuantize
        Dropout ELU Embedding EmbeddingBag FXFloatFunctional FloatFunctional GroupNorm Hardswish InstanceNorm1d
        InstanceNorm2d InstanceNorm3d LSTM LayerNorm LeakyReLU Linear MultiheadAttention PReLU QFunctional Quantize
        ReLU6 Sigmoid Softmax
    """,
    "nn.quantized.dynamic": "",
    "nn.quantized.functional": "",
    "nn.quantized.modules": """
        BatchNorm2d BatchNorm3d Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d DeQuantize
        Dropout ELU Embedding EmbeddingBag FXFloatFunctional FloatFunctional GroupNorm Hardswish InstanceNorm1d
        InstanceNorm2d InstanceNorm3d LSTM LayerNorm LeakyReLU Linear MultiheadAttention PReLU QFunctional Quantize
        ReLU6 Sigmoid Softmax
    """,
    "nn.intrinsic": """
        BNReLU2d BNReLU3d ConvBn1d ConvBn2d ConvBn3d ConvBnReLU1d ConvBnReLU2d ConvBnReLU3d ConvReLU1d ConvReLU2d
        ConvReLU3d LinearBn1d LinearReLU
    """,
    "nn.intrinsic.qat": "",
    "nn.intrinsic.quantized": "BNReLU2d BNReLU3d ConvReLU1d ConvReLU2d ConvReLU3d LinearReLU",
    "nn.qat": "Conv1d Conv2d Conv3d Embedding EmbeddingBag Linear",
    "nn.quantizable": "",
    "nn.attention.varlen": "AuxRequest varlen_attn varlen_attn_out",
    "jit.mobile": "LiteScriptModule validate_map_location",
    "jit.quantized": """
        QuantizedGRU QuantizedGRUCell QuantizedLSTM QuantizedLSTMCell QuantizedLinear QuantizedLinearFP16
        QuantizedRNNBase QuantizedRNNCell QuantizedRNNCellBase quantize_linear_modules quantize_rnn_cell_modules
        quantize_rnn_modules
    """,
    "jit.frontend": """
        Builder ExprBuilder FrontendError FrontendTypeError NotSupportedError StmtBuilder UnsupportedNodeError
        WithItemBuilder build_class_def build_def build_expr build_ignore_context_manager build_param
        build_param_list build_stmt build_stmts build_withitem build_withitems find_before get_class_assigns
        get_class_properties get_default_args get_default_args_for_class get_jit_class_def get_jit_def
        get_qualified_name is_reserved_name is_torch_jit_ignore_context_manager
    """,
    "cuda.nccl": "all_gather all_reduce broadcast reduce reduce_scatter version",
    "cuda.nvtx": "mark range range_end range_pop range_push range_start",
    "cuda.tunable": """
        enable get_filename get_max_tuning_duration get_max_tuning_iterations get_results get_rotating_buffer_size
        get_validators is_enabled mgpu_tune_gemm_in_file read_file record_untuned_enable record_untuned_is_enabled
        set_filename set_max_tuning_duration set_max_tuning_iterations set_numerical_check_tolerances
        set_rotating_buffer_size tune_gemm_in_file tuning_enable tuning_is_enabled
    """,
    "cuda.gds": "GdsFile gds_deregister_buffer gds_register_buffer",
    "cuda.comm": "broadcast broadcast_coalesced gather reduce_add reduce_add_coalesced scatter",
    "cuda.profiler": "profile start stop",
    "fx.experimental.symbolic_shapes": """
        CURRENT_NODE_KEY ConvertIntKey DimDynamic=DUCK,DYNAMIC,INFER_STRIDE,STATIC,UNBACKED DivideByKey
        GuardOnDataDependentSymNode RelaxedUnspecConstraint SHAPEENV_EVENT_KEY SYMPY_INTERP ShapeEnv Specialization
        StatefulSymbolicContext StatelessSymbolicContext StrictMinMaxConstraint SubclassSymbolicContext
        SymIntEqByExpr SymIntSymbolicContext SymbolicContext TrackedFake ValueRangesSLoc canonicalize_bool_expr
        check_consistent compute_unbacked_bindings create_contiguous free_symbols free_unbacked_symbols guard_float
        guard_int guard_or_false guard_or_true guard_scalar guard_size_oblivious guarding_hint_or_throw
        has_free_symbols has_free_unbacked_symbols has_static_value has_symbolic_sizes_strides is_accessor_node
        is_concrete_bool is_concrete_float is_concrete_int is_nested_int is_symbol_binding_fx_node optimization_hint
        rebind_unbacked resolve_unbacked_bindings statically_known_false statically_known_true sym_and sym_eq sym_or
    """,
    "fx.passes.graph_drawer": "FxGraphDrawer",
    "fx.passes.operator_support": """
        OpSupports OperatorSupport OperatorSupportBase any_chain chain create_op_support
    """,
    "fx.passes.infra": "",
    "fx.passes.infra.pass_base": "PassBase PassResult",
    "fx.passes.infra.partitioner": """
        CapabilityBasedPartitioner GraphModule Node OperatorSupportBase Partition fuse_by_partitions
    """,
    "fx.passes.infra.pass_manager": "PassManager pass_result_wrapper this_before_that_pass_constraint",
    "fx.operator_schemas": """
        ArgsKwargsPair check_for_mutable_operation create_type_hint get_signature_for_torch_op normalize_function
        normalize_module type_matches
    """,
    "_subclasses": """
        CrossRefFakeMode DynamicOutputShapeException FakeTensor FakeTensorMode UnsupportedFakeTensorException
    """,
    "_subclasses.fake_tensor": "FakeTensor FakeTensorMode is_fake",
    "_subclasses.functional_tensor": "",
    "_functorch": "_activation_offloading compile_utils=raise_getitems",
    "_functorch.partitioners": """
        _extract_fwd_bwd_outputs _extract_graph_with_inputs_outputs get_default_op_list has_recomputable_ops
        has_recomputable_rng_ops is_sym_node must_recompute
    """,
    "_functorch.aot_autograd": """
        JointWithDescriptors aot_compile_joint_with_descriptors aot_export_joint_with_descriptors
    """,
    "_functorch.eager_transforms": "",
    "_higher_order_ops": """
        BaseHOP InvokeQuant _foreach_map aoti_call_delegate associative_scan auto_functionalized
        auto_functionalized_v2 call_torchbind cond dynamo_bypassing_wrapper executorch_call_delegate flat_apply
        flex_attention flex_attention_backward foreach_map hints_wrapper inductor_compiled_code
        inline_asm_elementwise invoke_leaf_function invoke_quant invoke_quant_packed invoke_subgraph local_map_hop
        map out_dtype print register_hook run_const_graph scan strict_mode tag_activation_checkpoint while_loop
        while_loop_stack_output with_effects wrap_activation_checkpoint wrap_with_autocast
        wrap_with_set_grad_enabled
    """,
    "_decomp": """
        _should_decompose_because_unsafe_op core_aten_decompositions decomposition_table get_decompositions
        meta_table pre_autograd_decomposition_table register_decomposition
    """,
    "_refs": "",
    "_prims": """
        RETURN_TYPE=INPLACE,NEW,NONE,VIEW _make_token _sink_tokens _uniform_helper abs acos acosh add amax amin
        as_strided as_strided_scatter asin asinh atan atan2 atanh bessel_i0 bessel_i0e bessel_i1 bessel_i1e
        bessel_j0 bessel_j1 bitwise_and bitwise_not bitwise_or bitwise_xor broadcast_in_dim cat cbrt ceil clone
        collapse collapse_view conj conj_physical convert_element_type copy_strided copy_to cos cosh device_put
        digamma div empty_permuted empty_strided eq erf erf_inv erfc erfcx exp exp2 expand_dims expm1 fft_c2c
        fft_c2r fft_r2c fill floor fmax fmin fmod frexp gcd ge gt hypot igamma igammac imag iota isfinite item le
        lgamma log log10 log1p log2 lt maximum maximum_value minimum minimum_value mul ndtri ne neg nextafter normal
        pow prod real reciprocal remainder reshape resize rev round rsqrt scalar_tensor shift_left
        shift_right_arithmetic shift_right_logical sign signbit sin sinh slice spherical_bessel_j0 split_dim sqrt
        squeeze sub sum svd tan tanh transpose trunc var view_element_type view_of where xor_sum zeta
    """,
    "_dispatch": "",
    "_dispatch.python": "enable_pre_dispatch enable_python_dispatcher no_python_dispatcher",
    "_lazy": "add_step_closure get_tensor_id mark_step run_step_closures save sync_multi to_cpu wait_device_ops",
    "_dynamo._trace_wrapped_higher_order_op": "TransformGetItemToIndex trace_wrapped",
    "_dynamo.backends": "",
    "_dynamo.backends.common": "aot_autograd",
    "_dynamo.utils": "is_compile_supported",
    "_dynamo.exc": "",
    "_dynamo.testing": "",
    "_dynamo.external_utils": "",
    "fx._lazy_graph_module": """
        GraphModule _make_graph_module compatibility reduce_graph_module reduce_package_graph_module
    """,
    "testing._internal": "",
    "testing._internal.common_utils": "",
    "testing._internal.common_cuda": "",
    "contrib": "",
    "utils.flop_counter": "FlopCounterMode register_flop_formula",
    "utils.module_tracker": "ModuleTracker",
    "utils.weak": "TensorWeakRef WeakIdKeyDictionary WeakIdRef WeakTensorKeyDictionary",
    "utils.collect_env": """
        SystemEnv check_release_file get_cachingallocator_config get_clang_version get_cmake_version
        get_conda_packages get_cpu_info get_cuda_module_loading_config get_cudnn_version get_env_info
        get_gcc_version get_gpu_info get_intel_gpu_detected get_intel_gpu_driver_version get_intel_gpu_onboard
        get_libc_version get_linux_pkg_version get_lsb_version get_mac_version get_nvidia_driver_version
        get_nvidia_smi get_os get_pip_packages get_platform get_pretty_env_info get_python_platform
        get_running_cuda_version get_windows_version is_xnnpack_available main pretty_str run
        run_and_parse_first_match run_and_read_all run_and_return_first_line
    """,
    "utils.backend_registration": "generate_methods_for_privateuse1_backend rename_privateuse1_backend",
    "utils.model_dump": """
        burn_in_info get_info_and_burn_skeleton get_inline_skeleton get_model_info get_storage_info
        hierarchical_pickle
    """,
    "fx.traceback": """
        NodeSource NodeSourceAction=CREATE,REPLACE annotate annotate_fn format_stack get_current_meta
        get_current_replay_node get_graph_provenance_json has_preserved_node_meta preserve_node_meta
        reset_grad_fn_seq_nr set_current_meta set_current_replay_node set_grad_fn_seq_nr set_stack_trace
    """,
    "optim.sparse_adam": "SparseAdam",
    "autograd.profiler_legacy": "profile",
    "nn.attention.bias": "CausalBias CausalVariant=LOWER_RIGHT,UPPER_LEFT causal_lower_right causal_upper_left",
    "nn.attention.experimental": "",
    "_higher_order_ops.flex_attention": """
        FlexAttentionAutogradOp FlexAttentionBackwardHOP FlexAttentionHOP UnsupportedAliasMutationException
        autograd_not_implemented create_fw_bw_graph flex_attention_autocast_cpu flex_attention_autocast_cuda
        flex_attention_autograd flex_attention_backward_fake_tensor_mode flex_attention_backward_functionalize
        flex_attention_backward_proxy_torch_dispatch_mode flex_attention_fake_impl flex_attention_functionalize
        flex_attention_proxy_torch_dispatch_mode has_user_subclass math_attention redirect_to_mode reenter_make_fx
        register_fake save_values_for_backward saved_values sdpa_dense sdpa_dense_backward trace_flex_attention
        trace_flex_attention_backward validate_subgraph_args_types
    """,
    "fx.passes.utils": "HolderModule compare_graphs lift_subgraph_as_module",
    "fx.passes.tools_common": """
        FxNetAccFusionsFinder get_acc_ops_name get_node_target is_node_output_tensor legalize_graph
        stable_topological_sort
    """,
    "fx.passes.graph_manipulation": """
        get_size_of_all_nodes get_size_of_node get_tensor_meta replace_target_nodes_with size_bytes
    """,
    "fx.passes.pass_manager": """
        PassManager inplace_wrapper log_hook loop_pass these_before_those_pass_constraint
        this_before_that_pass_constraint
    """,
    "fx.passes.splitter_base": """
        FxNetAccNodesFinder FxNetSplitterInternalError NodeEvent NodeEventTracker SplitResult Subgraph
        generate_inputs_for_submodules
    """,
    "fx.experimental.optimization": """
        MklSubgraph UnionFind extract_subgraph fuse gen_mkl_autotuner matches_module_pattern modules_to_mkldnn
        optimize_for_inference remove_dropout replace_node_module reset_modules use_mkl_length
    """,
    "fx.experimental.const_fold": "FoldedGraphModule get_unique_attr_name_in_module split_const_subgraphs",
    "fx.experimental.normalize": """
        AnnotateTypesWithSchema Node NormalizeArgs NormalizeOperators Proxy Transformer create_type_hint
        map_aggregate normalize_function normalize_module
    """,
    "fx.experimental.sym_node": """
        DynamicInt SymNode magic_methods method_to_operator sym_acos sym_asin sym_atan sym_cos sym_cosh sym_log2
        sym_sin sym_sinh sym_sqrt sym_tan sym_tanh
    """,
    "fx.tensor_type": "Dyn TensorType is_consistent is_more_precise",
    "fx.annotate": "annotate",
    "backends.cudnn.rnn": "",
    "backends.python_native": "",
    "backends.xeon": "",
    "multiprocessing.queue": "ConnectionWrapper Queue SimpleQueue",
    "utils.jit": "",
    "utils.serialization": "",
    "utils.viz": "_cycles=warn_tensor_cycles",
    "utils.backcompat": "Warning broadcast_warning keepdim_warning",
    "utils.show_pickle": "DumpUnpickler FakeClass FakeObject main",
    "utils.debug_log": "debug_grad_log",
    "utils.file_baton": "FileBaton",
    "utils.cpp_backtrace": "get_cpp_backtrace",
    "utils.data.backward_compatibility": "worker_init_fn",
    "utils.data.graph_settings": """
        apply_random_seed apply_sharding apply_shuffle_seed apply_shuffle_settings get_all_graph_pipes
    """,
    "jit.supported_ops": "",
    "jit.unsupported_tensor_ops": "execWrapper",
    "jit.generate_bytecode": "format_bytecode generate_upgraders_bytecode",
    "cuda.graphs": "CUDAGraph graph graph_pool_handle is_current_stream_capturing make_graphed_callables",
    "cuda.green_contexts": "GreenContext",
    "cuda.jiterator": "",
    "cuda.sparse": """
        BFloat16Tensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor ShortTensor
    """,
    "nn.backends": "",
    "nn.cpp": "ModuleWrapper OrderedDictWrapper",
    "fx.config": "",
    "utils.deterministic": "fill_uninitialized_memory",
    "accelerator.graphs": "Graph",
    "distributed.tensor._api": "DTensor distribute_module distribute_tensor empty full ones rand randn zeros",
    "distributed.fsdp._common_utils": """
        FullOptimStateDictConfig FullStateDictConfig
        HandleTrainingState=BACKWARD_POST,BACKWARD_PRE,FORWARD,IDLE,SUMMON_FULL_PARAMS OptimStateDictConfig
        ShardingStrategy=FULL_SHARD,HYBRID_SHARD,NO_SHARD,SHARD_GRAD_OP,_HYBRID_SHARD_ZERO2 StateDictConfig
        StateDictType=FULL_STATE_DICT,LOCAL_STATE_DICT,SHARDED_STATE_DICT
        TrainingState=FORWARD_BACKWARD,IDLE,SUMMON_FULL_PARAMS clean_tensor_name collect_grad_tensors
        replace_grad_tensors
    """,
    "ao.quantization.quant_type": "QuantType=DYNAMIC,QAT,STATIC,WEIGHT_ONLY",
    "_logging": """
        LazyString dtrace_structured getArtifactLogger get_structured_logging_overhead hide_warnings set_logs
        trace_structured warning_once
    """,
    "_vmap_internals": "vmap",
}
