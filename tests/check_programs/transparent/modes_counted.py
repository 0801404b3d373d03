"""A test of torch counts the modes before and after it, to find one that was left behind."""

import unittest

import torch
from torch.testing._internal.common_utils import TestCase


class Training(TestCase):
    """Calls backward more often than is watched."""

    def test_modes_are_those_from_before(self) -> None:
        """None was left, and none is gone."""
        before = torch._C._len_torch_function_stack()
        weight = torch.ones(3, requires_grad=True)
        for _ in range(4):
            (weight * 2).sum().backward()

        assert before == torch._C._len_torch_function_stack() == 0
        with torch.device("meta"):
            assert torch._C._len_torch_function_stack() == 1
            assert torch.ones(1).is_meta


result = unittest.TestResult()
Training("test_modes_are_those_from_before").run(result)
print(result.errors, result.failures, result.testsRun)
