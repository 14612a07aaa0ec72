"""The names of ``torch.distributed``, which ptcore has not, by module; see `_absent_names`."""

DISTRIBUTED = {
    "distributed": """
        AllToAllOptions AllreduceCoalescedOptions AllreduceOptions Backend=NCCL,default_device_backend_map
        BackendConfig BarrierOptions BroadcastOptions DebugLevel=DETAIL,INFO,OFF DeviceMesh DistBackendError
        DistError DistNetworkError DistStoreError FileStore GatherOptions GroupMember=NON_GROUP_MEMBER,WORLD
        GroupName HashStore P2POp PrefixStore ProcessGroup ProcessGroupGloo ProcessGroupMPI ProcessGroupNCCL
        QueueEmptyError ReduceOp=AVG,MAX,MIN,SUM ReduceOptions ReduceScatterOptions ScatterOptions Store TCPStore
        Work _all_gather_base _get_process_group_name _local_tensor=LocalTensorMode _reduce_scatter_base all_gather
        all_gather_coalesced all_gather_into_tensor all_gather_object all_gather_single all_reduce
        all_reduce_coalesced all_to_all all_to_all_single barrier batch_isend_irecv breakpoint broadcast
        broadcast_object_list default_pg_timeout destroy_process_group gather gather_object get_backend
        get_backend_config get_debug_level get_default_backend_for_device get_global_rank get_group_rank
        get_node_local_rank get_pg_count get_process_group_ranks get_rank get_world_size group=WORLD
        init_device_mesh init_process_group irecv is_available is_backend_available is_gloo_available is_initialized
        is_mpi_available is_nccl_available is_torchelastic_launched is_ucc_available is_xccl_available isend
        monitored_barrier new_group new_subgroups new_subgroups_by_enumeration record_comm recv recv_object_list
        reduce reduce_op=AVG,BAND,BOR,BXOR,MAX,MIN,PREMUL_SUM,PRODUCT,SUM reduce_scatter reduce_scatter_single
        reduce_scatter_tensor register_rendezvous_handler rendezvous scatter scatter_object_list send
        send_object_list shrink_group split_group supports_complex
    """,
    "distributed.algorithms": "Join JoinHook Joinable",
    "distributed.algorithms._checkpoint": "",
    "distributed.algorithms._checkpoint.checkpoint_wrapper": """
        ActivationWrapper CheckpointImpl=NO_REENTRANT,REENTRANT CheckpointWrapper OffloadWrapper
        apply_activation_checkpointing checkpoint_wrapper offload_wrapper
    """,
    "distributed.algorithms.ddp_comm_hooks": """
        DDPCommHookType=ALLREDUCE,BATCHED_POWER_SGD,BF16_COMPRESS,FP16_COMPRESS,NOOP,POWER_SGD,POWER_SGD_RANK2
        post_localSGD_hook=PostLocalSGDState register_ddp_comm_hook
    """,
    "distributed.algorithms.ddp_comm_hooks.default_hooks": """
        allreduce_hook bf16_compress_hook bf16_compress_wrapper fp16_compress_hook fp16_compress_wrapper
    """,
    "distributed.algorithms.join": "Join JoinHook Joinable",
    "distributed.algorithms.model_averaging": "",
    "distributed.algorithms.model_averaging.averagers": "ModelAverager PeriodicModelAverager",
    "distributed.autograd": "backward context get_gradients is_available",
    "distributed.checkpoint": """
        BytesStorageMetadata CheckpointException ChunkStorageMetadata DefaultLoadPlanner DefaultSavePlanner
        FileSystemReader FileSystemWriter HuggingFaceStorageReader HuggingFaceStorageWriter LoadPlan LoadPlanner
        Metadata QuantizedHuggingFaceStorageReader ReadItem SavePlan SavePlanner StorageReader StorageWriter
        TensorStorageMetadata WriteItem async_save load load_sharded_optimizer_state_dict load_state_dict save
        save_state_dict
    """,
    "distributed.checkpoint.default_planner": """
        DefaultLoadPlanner DefaultSavePlanner create_default_global_load_plan create_default_global_save_plan
        create_default_local_load_plan create_default_local_save_plan
    """,
    "distributed.checkpoint.filesystem": """
        FileSystem FileSystemBase FileSystemReader FileSystemWriter SerializationFormat=SAFETENSORS,TORCH_SAVE
    """,
    "distributed.checkpoint.format_utils": """
        BroadcastingTorchSaveReader DynamicMetaLoadPlanner _EmptyStateDictLoadPlanner _load_state_dict
        dcp_to_torch_save torch_save_to_dcp
    """,
    "distributed.checkpoint.metadata": """
        BytesStorageMetadata ChunkStorageMetadata Metadata MetadataIndex StorageMeta TensorProperties
        TensorStorageMetadata
    """,
    "distributed.checkpoint.planner": """
        BytesIOWriteData LoadItemType=BYTE_IO,TENSOR LoadPlan LoadPlanner ReadItem SavePlan SavePlanner
        TensorWriteData WriteItem WriteItemType=BYTE_IO,SHARD,TENSOR
    """,
    "distributed.checkpoint.state_dict": """
        DictValueType FQNS_T ListDictValueType OptimizerStateType PrimitiveType StateDictOptions ValueType
        _init_optim_state get_model_state_dict get_optimizer_state_dict get_state_dict set_model_state_dict
        set_optimizer_state_dict set_state_dict
    """,
    "distributed.checkpoint.state_dict_loader": "_load_state_dict _load_state_dict_from_keys load load_state_dict",
    "distributed.checkpoint.state_dict_saver": """
        AsyncCheckpointerType=PROCESS,THREAD AsyncSaveResponse async_save save save_state_dict
    """,
    "distributed.checkpoint.stateful": "Stateful StatefulT",
    "distributed.checkpoint.storage": "StorageReader StorageWriter WriteResult",
    "distributed.device_mesh": "DeviceMesh=_concatenate _register_distributed_opaque_types init_device_mesh",
    "distributed.distributed_c10d": """
        AllToAllOptions AllreduceCoalescedOptions AllreduceOptions Backend BackendConfig BarrierOptions
        BroadcastOptions DebugLevel=DETAIL,INFO,OFF GatherOptions GroupMember GroupName P2POp PrefixStore
        ProcessGroup ProcessGroupGloo ReduceOp=AVG,MAX,SUM ReduceOptions ReduceScatterOptions ScatterOptions Store
        Work _get_default_group _pg_map _resolve_process_group all_gather all_gather_coalesced
        all_gather_into_tensor all_gather_object all_gather_single all_reduce all_reduce_coalesced all_to_all
        all_to_all_single barrier batch_isend_irecv broadcast broadcast_object_list default_pg_timeout
        destroy_process_group gather gather_object get_backend get_backend_config get_debug_level
        get_default_backend_for_device get_global_rank get_group_rank get_node_local_rank get_pg_count
        get_process_group_ranks get_rank get_world_size group init_process_group irecv is_backend_available
        is_gloo_available is_initialized is_mpi_available is_nccl_available is_torchelastic_launched
        is_ucc_available is_xccl_available isend monitored_barrier new_group new_subgroups
        new_subgroups_by_enumeration record_comm recv recv_object_list reduce
        reduce_op=AVG,BAND,BOR,BXOR,MAX,MIN,PREMUL_SUM,PRODUCT,SUM reduce_scatter reduce_scatter_single
        reduce_scatter_tensor scatter scatter_object_list send send_object_list shrink_group split_group
        supports_complex
    """,
    "distributed.elastic": "",
    "distributed.elastic.multiprocessing": """
        DefaultLogsSpecs LogsDest LogsSpecs MultiprocessContext PContext ProcessFailure RunProcsResult
        SignalException Std=ALL,ERR,NONE,OUT SubprocessContext start_processes to_map
    """,
    "distributed.elastic.multiprocessing.errors": """
        ChildFailedError ErrorHandler ProcessFailure get_error_handler record
    """,
    "distributed.elastic.agent": "",
    "distributed.elastic.agent.server": """
        ElasticAgent RunResult SimpleElasticAgent Worker WorkerGroup WorkerSpec
        WorkerState=FAILED,HEALTHY,INIT,STOPPED,SUCCEEDED,UNHEALTHY,UNKNOWN
    """,
    "distributed.fsdp": """
        BackwardPrefetch=BACKWARD_POST,BACKWARD_PRE CPUOffload CPUOffloadPolicy DataParallelMeshDims FSDPModule
        FullOptimStateDictConfig FullStateDictConfig
        FullyShardedDataParallel=full_optim_state_dict,optim_state_dict,state_dict_type,summon_full_params
        LocalOptimStateDictConfig LocalStateDictConfig MixedPrecision MixedPrecisionPolicy OffloadPolicy
        OptimStateDictConfig OptimStateKeyType=PARAM_ID,PARAM_NAME ShardedOptimStateDictConfig
        ShardedStateDictConfig ShardingStrategy=FULL_SHARD,HYBRID_SHARD,NO_SHARD,SHARD_GRAD_OP,_HYBRID_SHARD_ZERO2
        StateDictConfig StateDictSettings StateDictType=FULL_STATE_DICT,LOCAL_STATE_DICT,SHARDED_STATE_DICT
        UnshardHandle fully_shard register_fsdp_forward_method share_comm_ctx
    """,
    "distributed.fsdp.api": """
        BackwardPrefetch=BACKWARD_POST,BACKWARD_PRE CPUOffload FullOptimStateDictConfig FullStateDictConfig
        LocalOptimStateDictConfig LocalStateDictConfig MixedPrecision OptimStateDictConfig
        ShardedOptimStateDictConfig ShardedStateDictConfig
        ShardingStrategy=FULL_SHARD,HYBRID_SHARD,NO_SHARD,SHARD_GRAD_OP,_HYBRID_SHARD_ZERO2 StateDictConfig
        StateDictSettings StateDictType=FULL_STATE_DICT,LOCAL_STATE_DICT,SHARDED_STATE_DICT
    """,
    "distributed.fsdp.fully_sharded_data_parallel": """
        FullOptimStateDictConfig FullStateDictConfig
        FullyShardedDataParallel=fsdp_modules,optim_state_dict,optim_state_dict_to_load,state_dict_type
        MixedPrecision OptimStateKeyType=PARAM_ID,PARAM_NAME ShardedOptimStateDictConfig ShardedStateDictConfig
        ShardingStrategy=FULL_SHARD,HYBRID_SHARD,NO_SHARD,SHARD_GRAD_OP,_HYBRID_SHARD_ZERO2
        StateDictType=FULL_STATE_DICT,LOCAL_STATE_DICT,SHARDED_STATE_DICT
    """,
    "distributed.fsdp.sharded_grad_scaler": "ProcessGroup ShardedGradScaler",
    "distributed.fsdp.wrap": """
        CustomPolicy ModuleWrapPolicy _or_policy always_wrap_policy enable_wrap lambda_auto_wrap_policy
        size_based_auto_wrap_policy transformer_auto_wrap_policy wrap
    """,
    "distributed.launch": "get_args_parser launch main parse_args run",
    "distributed.launcher": "LaunchConfig elastic_launch launch_agent",
    "distributed.launcher.api": "LaunchConfig elastic_launch launch_agent",
    "distributed.nn": """
        ReduceOp RemoteModule all_gather all_reduce all_to_all all_to_all_single broadcast gather group reduce
        reduce_scatter scatter
    """,
    "distributed.nn.functional": """
        ReduceOp all_gather all_reduce all_to_all all_to_all_single broadcast gather group reduce reduce_scatter
        scatter
    """,
    "distributed.optim": "DistributedOptimizer PostLocalSGDOptimizer ZeroRedundancyOptimizer as_functional_optim",
    "distributed.pipelining": """
        Pipe PipelineStage Schedule1F1B ScheduleDualPipeV ScheduleGPipe ScheduleInterleaved1F1B
        ScheduleInterleavedZeroBubble ScheduleLoopedBFS ScheduleZBVZeroBubble SplitPoint=BEGINNING,END build_stage
        pipe_split pipeline
    """,
    "distributed.pipelining.schedules": """
        BACKWARD_INPUT BACKWARD_WEIGHT FORWARD FULL_BACKWARD OVERLAP_F_B PipelineScheduleMulti
        PipelineScheduleSingle REDUCE_GRAD RESHARD Schedule1F1B ScheduleDualPipeV ScheduleGPipe
        ScheduleInterleaved1F1B ScheduleInterleavedZeroBubble ScheduleLoopedBFS ScheduleZBVZeroBubble UNSHARD
        _Action _PipelineContext _PipelineSchedule _PipelineScheduleRuntime _wait_batch_p2p get_schedule_class
    """,
    "distributed.pipelining.stage": "PipelineStage _normalize_model_output_as_tuple build_stage",
    "distributed.rendezvous": "register_rendezvous_handler rendezvous",
    "distributed.rpc": """
        AllGatherStates BackendType=TENSORPIPE BackendValue RRef TensorPipeRpcBackendOptions backend_registered
        construct_rpc_backend_options get_worker_info init_backend init_rpc is_available method_factory new_method
        register_backend remote rpc_async rpc_sync shutdown
    """,
    "distributed.rpc.functions": "async_execution",
    "distributed.run": """
        DefaultLogsSpecs LaunchConfig LogsSpecs Std=ALL,ERR,NONE,OUT check_env config_from_args
        determine_local_world_size elastic_launch env get_args_parser get_logger get_rdzv_endpoint get_use_env
        macros main parse_args parse_min_max_nnodes record run run_script_path
    """,
    "distributed.tensor": """
        DTensor=from_local DeviceMesh Partial Placement Replicate Shard=local_shard_size_and_offset
        distribute_module distribute_tensor empty full ones rand randn zeros
    """,
    "distributed.tensor.device_mesh": "DeviceMesh init_device_mesh",
    "distributed.tensor.experimental": "context_parallel implicit_replication local_map register_sharding",
    "distributed.tensor.parallel": """
        ColwiseParallel ParallelStyle PrepareModuleInput PrepareModuleInputOutput PrepareModuleOutput
        RowwiseParallel SequenceParallel loss_parallel parallelize_module
    """,
    "distributed.tensor.placement_types": """
        Partial Placement Replicate Shard=_local_shard_size_and_offset,local_shard_size_and_offset _StridedShard
    """,
    "distributed.utils": "_sync_module_states",
    "distributed._composable": "checkpoint contract replicate",
    "distributed._composable.fsdp": """
        CPUOffloadPolicy FSDPModule MixedPrecisionPolicy OffloadPolicy fully_shard register_fsdp_forward_method
    """,
    "distributed._composable.replicate": "DDP contract replicate unimplemented_deepcopy",
    "distributed._functional_collectives": """
        AsyncCollectiveTensor DeviceMesh all_gather_inplace all_gather_into_tensor_backward
        all_gather_into_tensor_coalesced all_gather_into_tensor_coalesced_backward
        all_gather_into_tensor_coalesced_setup_context all_gather_into_tensor_setup_context all_gather_single
        all_gather_single_autograd all_gather_single_coalesced all_gather_tensor all_gather_tensor_autograd
        all_gather_tensor_inplace all_reduce all_reduce_backward all_reduce_coalesced all_reduce_coalesced_backward
        all_reduce_coalesced_setup_context all_reduce_inplace all_reduce_setup_context all_to_all_inplace
        all_to_all_single all_to_all_single_autograd all_to_all_single_backward all_to_all_single_setup_context
        allow_inflight_collective_as_graph_input_ctx backend_impl batch_p2p_ops_inplace broadcast irecv_inplace
        isend_inplace legacy_all_gather legacy_all_gather_base legacy_all_to_all_single legacy_allgather
        legacy_allgather_single legacy_allreduce legacy_batch_p2p_ops legacy_irecv legacy_isend
        legacy_reduce_scatter_base legacy_reducescatter legacy_reducescatter_single permute_tensor
        reduce_scatter_single reduce_scatter_single_autograd reduce_scatter_single_coalesced reduce_scatter_tensor
        reduce_scatter_tensor_autograd reduce_scatter_tensor_backward reduce_scatter_tensor_coalesced
        reduce_scatter_tensor_coalesced_backward reduce_scatter_tensor_coalesced_setup_context
        reduce_scatter_tensor_inplace reduce_scatter_tensor_setup_context wait_tensor wait_tensor_backward
        wait_tensor_setup_context
    """,
    "distributed._shard": "load_with_process_group shard_module shard_parameter",
    "distributed._shard.sharded_tensor": """
        Shard ShardMetadata ShardedTensor ShardedTensorBase ShardedTensorMetadata TensorProperties allclose
        constant_ custom_sharded_op_impl empty equal full init_from_local_shards kaiming_uniform_ normal_ ones
        pre_load_state_dict_hook rand randn sharded_embedding sharded_embedding_bag state_dict_hook uniform_ zeros
    """,
    "distributed._tensor": """
        DTensor=from_local DeviceMesh Partial Placement Replicate Shard distribute_module distribute_tensor empty
        full init_device_mesh ones rand randn zeros
    """,
    "distributed._tensor.device_mesh": "DeviceMesh init_device_mesh",
    "distributed._tensor.placement_types": """
        DTensorSpec DeviceMesh Partial Placement Replicate Shard ShardOrderEntry TensorMeta
    """,
    "distributed._symmetric_memory": """
        empty enable_symm_mem_for_group get_backend get_mem_pool get_signal_pad_size is_nvshmem_available
        is_symm_mem_tensor reduce_scatter_offset rendezvous set_backend set_signal_pad_size
    """,
    "distributed._tools": """
        FSDPMemTracker MSPS MemTracker MemoryTracker ModTracker RuntimeEstimator SACEstimator SACGreedyOrderMeta
        SACStats SACTradeOffStats
    """,
    "distributed.fsdp._fully_shard": """
        CPUOffloadPolicy DataParallelMeshDims FSDPModule MixedPrecisionPolicy OffloadPolicy UnshardHandle
        fully_shard register_fsdp_forward_method share_comm_ctx
    """,
    "distributed.fsdp._fully_shard._fsdp_common": """
        DDPMeshInfo DTensor DTensorSpec DataParallelMeshDims DataParallelMeshInfo DeviceMesh FSDPMeshInfo
        HSDPMeshInfo Shard ShardPlacementResult TrainingState=FORWARD,IDLE,POST_BACKWARD,PRE_BACKWARD is_bw
        resolve_shard_placement
    """,
}
