"""Settings of precision for products, convolution and attention, by PyTorch's names; kept before a device is used.

``matmul`` holds the settings of products and convolution, and whether cuDNN may be used. The CUDA backend sets ``told``
when it starts, and is then called at each change. ``has_cudnn`` tells whether cuDNN is installed.
"""
matmul = {"tf32": False, "reduced_half": True, "reduced_bfloat16": True, "convolution_tf32": True,
          "cudnn_enabled": True, "cudnn_deterministic": False, "cudnn_attention": False,
          "deterministic": False}
words = {"float32": "highest", "fp32_precision": "none"}
determinism = {"warn_only": False, "fill": True}
attention = {"math": True, "flash": True, "mem_efficient": True, "cudnn": True, "overrideable": True,
             "cudnn_first": False}
told = has_cudnn = None


def allow(name, value):
    """Sets one of ``matmul``."""
    matmul[name] = value
    if told is not None:
        told(name, value)


def need_determinism(name):
    """Refuses an op for which PyTorch has no deterministic implementation, where such ones are requested."""
    if not matmul["deterministic"]:
        return
    text = (f"{name} does not have a deterministic implementation, but you set "
            "'torch.use_deterministic_algorithms(True)'. You can turn off determinism just for this operation, or you "
            "can use the 'warn_only=True' option, if that's acceptable for your application.")
    if not determinism["warn_only"]:
        raise RuntimeError(text)
    from ptcore._errors import warn
    warn(text, UserWarning)


def set_float32(word):
    """The float32 precision of products: "highest", or "high" and "medium", which allow TF32."""
    words["float32"], words["fp32_precision"] = word, "ieee" if word == "highest" else "tf32"
    allow("tf32", word != "highest")


def allowing(**allowed):
    """The changes that a setting of ``attention`` needs, as pairs of a dict and its new values. cuDNN is used if it
    comes first, or if it is the only allowed backend."""
    made = {**attention, **allowed}
    own = made["math"] or made["flash"] or made["mem_efficient"]
    return (attention, allowed), (matmul, {"cudnn_attention": made["cudnn"] and (made["cudnn_first"] or not own)})


def allow_attention(**allowed):
    """Sets some of ``attention``."""
    _, (_, changes) = allowing(**allowed)
    attention.update(allowed)
    allow("cudnn_attention", changes["cudnn_attention"])


def check_attention(is_cuda):
    """Raises RuntimeError if no backend of attention is allowed; a device has some of PyTorch's backends."""
    if not (attention["math"] or attention["flash"] or (is_cuda and attention["mem_efficient"])
            or (is_cuda and attention["cudnn"] and has_cudnn())):
        raise RuntimeError("scaled_dot_product_attention: no backend that is allowed can run; allow "
                           "SDPBackend.MATH or SDPBackend.FLASH_ATTENTION")


def check_bool(name, value):
    """Returns ``value``, which must be a bool: RuntimeError as in PyTorch."""
    if not isinstance(value, bool):
        raise RuntimeError(f"{name}: expected a bool, got {type(value).__name__}")
    return value
