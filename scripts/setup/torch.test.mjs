import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { fakePrograms } from '../testing/fake-programs.mjs'
import { findTorch } from './torch.mjs'

const HAS_TORCH = 'exit 0'
const HAS_NONE = 'exit 1'

/** A system whose apt-get notes what it is asked; after an install the system's Python has torch, if the packages work. */
function makeSystem(root, changes = {}, install = `echo 'exit 0' >> ${root}/sys/state`) {
  const folder = fakePrograms(join(root, 'sys'), {
    python3: `. ${root}/sys/state; exit 1`,
    'apt-get': `echo "$@" >> ${root}/apt.log; case "$1" in install) ${install};; esac`,
  })
  writeFileSync(join(folder, 'state'), '')
  return {
    isRoot: true,
    aptGet: join(folder, 'apt-get'),
    debianPython: join(folder, 'python3'),
    ...changes,
  }
}

function find(root, system, env = {}) {
  return findTorch({
    env: { PATH: '', XDG_CACHE_HOME: join(root, 'cache'), ...env },
    system,
    say: () => {},
  })
}

await test('the interpreter that is named is taken, or refused', async (t) => {
  const root = t.testdir()
  const folder = fakePrograms(join(root, 'bin'), { good: HAS_TORCH, bad: HAS_NONE })
  const named = (name) =>
    find(root, makeSystem(root), { TUTTI_TEST_TORCH_PYTHON: join(folder, name) })
  t.same(await named('good'), { TUTTI_TEST_TORCH_PYTHON: join(folder, 'good') })
  await t.rejects(named('bad'), { message: /bad; it does not import torch 1\.10/ })
  await t.rejects(named('absent'), { message: /absent; it does not import/ })
})

await test('an interpreter of PATH that has torch is taken, and nothing is installed', async (t) => {
  const root = t.testdir()
  const without = fakePrograms(join(root, 'without'), { python3: HAS_NONE })
  const having = fakePrograms(join(root, 'having'), { python3: HAS_TORCH })
  const found = await find(root, makeSystem(root), { PATH: `${without}:/nowhere:${having}` })
  t.same(found, { TUTTI_TEST_TORCH_PYTHON: join(having, 'python3') })
  t.throws(() => readFileSync(join(root, 'apt.log')), { code: 'ENOENT' })
})

await test('root on Debian installs its packages once', async (t) => {
  const root = t.testdir()
  const system = makeSystem(root)
  const wanted = { TUTTI_TEST_TORCH_PYTHON: system.debianPython }
  t.same(await Promise.all([find(root, system), find(root, system)]), [wanted, wanted])
  t.same(readFileSync(join(root, 'apt.log'), 'utf8').trim().split('\n'), [
    'update -q',
    'install -q -y --no-install-recommends python3-torch python3-numpy',
  ])
})

await test('what is missing is reported, and does not end the run', async (t) => {
  const root = t.testdir()
  const cases = [
    [makeSystem(join(root, 'a'), { isRoot: false }), /sudo apt-get install python3-torch/],
    [makeSystem(join(root, 'b'), { aptGet: '/nowhere' }), /there is no apt-get/],
    [makeSystem(join(root, 'c'), {}, 'exit 100'), /python3-torch failed with exit code 100/],
    [makeSystem(join(root, 'd'), {}, ':'), /does not import what python3-torch has installed/],
  ]
  for (const [system, reason] of cases) {
    const found = await find(root, system)
    t.match(found, { TUTTI_TEST_TORCH_MISSING: reason })
    t.notOk('TUTTI_TEST_TORCH_PYTHON' in found)
  }
})
