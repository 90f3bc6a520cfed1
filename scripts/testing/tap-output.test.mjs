import { test } from 'tap'
import { renderTotals, TapOutput } from './tap-output.mjs'
import { suiteOf } from './test-files.mjs'

/** As tap 21 writes it with --reporter=tap. */
const OUTPUT = `TAP version 14
1..4
# Subtest: services/tensor/src/shape.test.ts
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
    1..3
    # time=43.581ms
ok 1 - services/tensor/src/shape.test.ts # time=43.581ms

# Subtest: services/tensor/src/tensor.test.ts
    not ok 1 - should be equivalent
      ---
      diff: |
        --- expected
        +++ actual
        ...
        ok 7 - quoted # SKIP quoted
      ...
    1..1
    # { total: 99, pass: 99 }
not ok 2 - services/tensor/src/tensor.test.ts # time=1200ms
  ---
  exitCode: 1
  ...

# Subtest: e2e/src/crash.test.ts
    1..0 # no tests found
not ok 3 - e2e/src/crash.test.ts # time=443.578ms
  ---
  exitCode: 1
  ...

# Subtest: e2e/src/browser.test.ts
    1..0 # no browser here
ok 4 - e2e/src/browser.test.ts # SKIP no browser here

File | % Stmts
# { total: 15, pass: 7, fail: 4, todo: 1, skip: 3 }
# time=1540.742ms`

function read(text) {
  const output = new TapOutput()
  const files = text.split('\n').flatMap((line) => output.take(line) ?? [])
  return { output, files }
}

await test('files, totals, skips and the trailer are read', async (t) => {
  const { output, files } = read(OUTPUT)
  t.same(files, [
    { file: 'services/tensor/src/shape.test.ts', isOk: true, ms: 43.581 },
    { file: 'services/tensor/src/tensor.test.ts', isOk: false, ms: 1200 },
    { file: 'e2e/src/crash.test.ts', isOk: false, ms: 443.578 },
    { file: 'e2e/src/browser.test.ts', isOk: true, ms: 0 },
  ])
  t.same(output.totals, { passed: 7, failed: 4, skipped: 4 })
  t.same(output.skipped, [
    'services/tensor/src/shape.test.ts > shapes > on a device (no device)',
    'services/tensor/src/shape.test.ts > in a container (needs a container runtime)',
    'services/tensor/src/shape.test.ts > later',
    'e2e/src/browser.test.ts (no browser here)',
  ])
  t.ok(output.trailer.includes('File | % Stmts'))
})

await test('a runner that died gives no totals', async (t) => {
  t.equal(read('TAP version 14\n# Subtest: a.test.ts\n    ok 1 - x').output.totals, undefined)
})

await test('the last line names what was skipped only if something was', async (t) => {
  t.equal(renderTotals({ passed: 3, failed: 0, skipped: 0 }), '3 passed, 0 failed')
  t.equal(renderTotals({ passed: 3, failed: 1, skipped: 2 }), '3 passed, 1 failed, 2 skipped')
})

await test('a file belongs to its room', async (t) => {
  t.equal(suiteOf('services/tensor/src/deep/shape.test.ts'), 'services/tensor')
  t.equal(suiteOf('e2e/src/a.test.ts'), 'e2e')
  t.equal(suiteOf('scripts/testing/a.test.mjs'), 'scripts')
})
