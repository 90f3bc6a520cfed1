import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { ensureInstalled } from './install.mjs'

const silent = () => {}

/** A project with a lockfile that needs nothing from a registry. */
function project(t) {
  const described = { name: 'empty', version: '1.0.0', lockfileVersion: 3, requires: true }
  return t.testdir({
    'package.json': JSON.stringify({ name: 'empty', version: '1.0.0' }),
    'package-lock.json': JSON.stringify({
      ...described,
      packages: { '': { name: 'empty', version: '1.0.0' } },
    }),
    node_modules: { 'left-over': '' },
  })
}

await test('packages are installed once, and again when the lockfile changes', async (t) => {
  const root = project(t)
  const leftOver = join(root, 'node_modules', 'left-over')
  await ensureInstalled(root, silent)
  t.equal(existsSync(leftOver), false, 'npm ci begins anew')

  writeFileSync(leftOver, '')
  await ensureInstalled(root, silent)
  t.equal(existsSync(leftOver), true, 'nothing to do')

  const lockfile = join(root, 'package-lock.json')
  writeFileSync(lockfile, `${readFileSync(lockfile, 'utf8')}\n`)
  await ensureInstalled(root, silent)
  t.equal(existsSync(leftOver), false, 'another lockfile')
})

await test('an install that fails says what npm said, and is tried again', async (t) => {
  const root = project(t)
  rmSync(join(root, 'package.json'))
  const failure = { message: /npm error[^]*npm ci failed with exit code/ }
  await t.rejects(ensureInstalled(root, silent), failure)
  await t.rejects(ensureInstalled(root, silent), failure)
})
