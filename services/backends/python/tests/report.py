"""
Runs test modules and prints a line of JSON per test, for a program that reports them: `python -m tests.report NAME...`

A line has `id`, `outcome` (passed, failed, skipped) and `detail`. What a test prints goes to stderr.
"""
import json
import os
import sys
import unittest


class Report(unittest.TestResult):
    """Writes each outcome as it is known; a failing subtest is a line of its own."""

    def __init__(self, out):
        super().__init__()
        self.out = out

    def addSuccess(self, test):
        self._write(test, "passed", "")

    def addFailure(self, test, err):
        self._write(test, "failed", self._exc_info_to_string(err, test))

    def addError(self, test, err):
        self._write(test, "failed", self._exc_info_to_string(err, test))

    def addSkip(self, test, reason):
        self._write(test, "skipped", reason)

    def addExpectedFailure(self, test, err):
        self._write(test, "passed", "")

    def addUnexpectedSuccess(self, test):
        self._write(test, "failed", "expected to fail, but passed")

    def addSubTest(self, test, subtest, err):
        # Unittest tells no success of a test with a subtest that failed.
        if err is not None:
            self._write(subtest, "failed", self._exc_info_to_string(err, test))

    def _write(self, test, outcome, detail):
        print(json.dumps({"id": test.id(), "outcome": outcome, "detail": detail}), file=self.out, flush=True)


if __name__ == "__main__":
    # The descriptor too: native code that prints must not mix with the report.
    report = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    unittest.defaultTestLoader.loadTestsFromNames(sys.argv[1:]).run(Report(report))
