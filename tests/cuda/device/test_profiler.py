"""Times and memory of a device in a profile."""
import pytest

import ptcore
from ptcore import nn
from ptcore.profiler import ProfilerActivity, profile, record_function, supported_activities

BOTH = [ProfilerActivity.CPU, ProfilerActivity.CUDA]


def test_activities():
    assert supported_activities() == set(BOTH)
    assert profile().use_device == "cuda"


def test_times():
    x = ptcore.ones(64, 64, device="cuda")
    cpu = ptcore.ones(2)
    x @ x
    with profile(activities=BOTH) as prof, record_function("all"):
        y = x @ x
        cpu + 1
        (y + 1).sum()
    by_name = {event.name: event for event in prof.events()}
    for name in ("aten::matmul", "aten::mm", "aten::sum"):
        event = by_name[name]
        assert event.use_device == "cuda" and event.is_legacy
        (kernel,) = event.kernels
        assert kernel.name == name and kernel.device == 0 and kernel.duration >= 0
    add, of_cpu = sorted((e for e in prof.events() if e.name == "aten::add"), key=lambda e: not e.kernels)
    assert add.kernels and not of_cpu.kernels and of_cpu.device_time_total == 0
    top = by_name["all"]
    assert top.device_time_total == pytest.approx(sum(child.device_time_total for child in top.cpu_children))
    assert top.self_device_time_total == pytest.approx(0)
    matmul = by_name["aten::matmul"]
    assert matmul.device_time_total >= by_name["aten::mm"].device_time_total
    table = prof.key_averages().table(sort_by="cuda_time_total")
    if any(event.device_time_total > 0 for event in prof.events()):
        assert "Self CUDA" in table and "Self CUDA time total" in table


def test_memory():
    with profile(activities=BOTH, profile_memory=True) as prof:
        x = ptcore.ones(1024, device="cuda")
        y = x * 2
    by_name = {event.name: event for event in prof.events()}
    for name in ("aten::ones", "aten::mul"):
        assert by_name[name].device_memory_usage >= 4096
        assert by_name[name].cpu_memory_usage == 0
    assert y.is_cuda


def test_training():
    model = nn.Linear(4, 2).cuda()
    optimizer = ptcore.optim.Adam(model.parameters())
    with profile() as prof:
        model(ptcore.ones(3, 4, device="cuda")).sum().backward()
        optimizer.step()
    rule = next(event for event in prof.events() if event.name == "LinearBackward0")
    assert rule.device_time_total >= 0
    assert any(child.kernels for child in rule.cpu_children)


def test_an_error():
    x = ptcore.ones(2, 3, device="cuda")
    with profile(activities=BOTH) as prof, pytest.raises(RuntimeError):
        x @ x
    assert len(prof.events()[0].kernels) == 1


def test_without_the_device():
    x = ptcore.ones(2, device="cuda")
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        x + x
    assert prof.events()[0].kernels == [] and prof.events()[0].use_device is None
