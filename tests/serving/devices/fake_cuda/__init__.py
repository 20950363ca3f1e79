"""How is code for CUDA tested without a GPU? A stand-in for torch.cuda that computes on the CPU and knows the rules.

`install(fake)` puts it in torch's place. Work is done at once, but nothing counts as done before an event
that comes after it was waited for: who uses a result earlier, or from another stream, breaks a rule.
"""

from fake_cuda.order import RuleBroken
from fake_cuda.state import FakeCuda
from fake_cuda.torch_patch import install

__all__ = ["FakeCuda", "RuleBroken", "install"]
