import { test } from 'tap'
import { renderTotals, TapOutput } from './tap-output.mjs'
import { suiteOf } from './test-files.mjs'

/** As a process with three files writes it with tap 21. */
const OUTPUT = `TAP version 14
# file: services/tensor/src/shape.test.ts
# Subtest: shapes
    ok 1 - should be equal
    ok 2 - on a device # SKIP no device
    # Subtest: deep
        ok 1 - should be equal
        1..1
    ok 3 - deep # time=1.425ms
    1..3
ok 1 - shapes # time=6.193ms
ok 2 - in a container # SKIP needs a container runtime
ok 3 - later # TODO

# file: services/tensor/src/tensor.test.ts
# Subtest: tensors
    not ok 1 - should be equivalent
      ---
      diff: |
        --- expected
        +++ actual
        ...
        ok 7 - quoted # SKIP quoted
      ...
    ok 2 - should be equal
    1..2
not ok 4 - tensors # time=1200ms
  ---
  at:
    fileName: services/tensor/src/tensor.test.ts
  ...

# file: services/tensor/src/empty.test.ts
1..4
# { total: 6, pass: 3, fail: 1, todo: 1, skip: 2 }
# time=1540.742ms`

function read(text) {
  const output = new TapOutput(['first.test.ts'])
  for (const line of text.split('\n')) output.take(line)
  return output
}

await test('assertions, failures and skips are read by file', async (t) => {
  const output = read(OUTPUT)
  t.ok(output.isComplete)
  t.same(Object.fromEntries(output.counts), {
    'first.test.ts': { passed: 0, failed: 0, skipped: 0 },
    'services/tensor/src/shape.test.ts': { passed: 2, failed: 0, skipped: 3 },
    'services/tensor/src/tensor.test.ts': { passed: 1, failed: 1, skipped: 0 },
    'services/tensor/src/empty.test.ts': { passed: 0, failed: 0, skipped: 0 },
  })
  t.same([...output.failed], ['services/tensor/src/tensor.test.ts'])
  t.same(output.skipped, [
    'services/tensor/src/shape.test.ts > shapes > on a device (no device)',
    'services/tensor/src/shape.test.ts > in a container (needs a container runtime)',
    'services/tensor/src/shape.test.ts > later',
  ])
})

await test('a process that died is not complete', async (t) => {
  t.notOk(read('TAP version 14\n# Subtest: a\n    ok 1 - x').isComplete)
})

await test('the last line names what was skipped only if something was', async (t) => {
  t.equal(renderTotals({ passed: 3, failed: 0, skipped: 0 }), '3 passed, 0 failed')
  t.equal(renderTotals({ passed: 3, failed: 1, skipped: 2 }), '3 passed, 1 failed, 2 skipped')
})

await test('a file belongs to its package', async (t) => {
  t.equal(suiteOf('services/tensor/src/deep/shape.test.ts'), 'services/tensor')
  t.equal(suiteOf('e2e/src/a.test.ts'), 'e2e')
  t.equal(suiteOf('scripts/testing/a.test.mjs'), 'scripts')
})
