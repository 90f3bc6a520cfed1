import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'tap'
import { runTests } from './run-tests.mjs'

const PASSING = "import { test } from 'tap'\nawait test('works', async (t) => t.ok(true))\n"
const FAILING = "import { test } from 'tap'\nawait test('breaks', async (t) => t.ok(false, 'no'))\n"
/** Fails the first time and passes the second. */
const FLAKY = `import { existsSync, writeFileSync } from 'node:fs'
import { test } from 'tap'
const mark = new URL('mark', import.meta.url)
const isSecond = existsSync(mark)
writeFileSync(mark, '')
await test('wavers', async (t) => t.ok(isSecond, 'on the second look'))
`

/** Runs the files of a project and tells how that went. */
async function run(t, files, options = {}) {
  const root = t.testdir()
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  let printed = ''
  const code = await runTests({
    root,
    files: Object.keys(files),
    jobs: 1,
    print: (text) => {
      printed += `${text}\n`
    },
    ...options,
  })
  return { root, code, printed, lastLine: printed.trimEnd().split('\n').at(-1) }
}

await test('a file that fails once is flaky, and the run passes', async (t) => {
  const { code, printed, lastLine } = await run(t, {
    'e2e/a.test.ts': PASSING,
    'e2e/b.test.ts': FLAKY,
  })
  t.equal(code, 0)
  t.match(printed, /^flaky: e2e\/b\.test\.ts\n {4}.*not ok 1 - on the second look$/m)
  t.notMatch(printed, /flaky: e2e\/a|e2e\/a\.test\.ts, alone/, 'a file that passes runs once')
  t.equal(lastLine, '2 passed, 0 failed')
})

await test('comments of a file that passes are printed where they are asked for', async (t) => {
  const file = `import { test } from 'tap'
await test('tells', async (t) => {
  t.comment('7 requests')
  await t.test('more', async (t) => t.ok(true))
})
`
  const files = { 'e2e/a.test.ts': file }
  const { printed } = await run(t, files, { hasComments: true })
  t.match(printed, /^ {4}# 7 requests\nok {4}e2e\/a\.test\.ts/)
  t.notMatch(printed, /Subtest/)
  t.notMatch((await run(t, files)).printed, /7 requests/)
})

await test('a file that fails twice fails the run', async (t) => {
  const { code, printed, lastLine } = await run(t, {
    'e2e/a.test.ts': FAILING,
    'e2e/b.test.ts': PASSING,
  })
  t.equal(code, 1)
  t.equal(printed.match(/not ok 1 - no$/gm)?.length, 2, 'both failures are shown')
  t.notMatch(printed, /flaky/)
  t.equal(lastLine, '1 passed, 1 failed')
})

const DEATHS = {
  'a crash': 'throw new Error("broken")',
  'an early end with code 0': 'process.exit(0)',
  'an end by a signal':
    'process.kill(process.pid, "SIGKILL"); await new Promise(() => setInterval(() => {}, 1e3))',
  'no test at all': 'export {}',
  'a test without an assertion':
    "import { test } from 'tap'\nawait test('nothing', async () => {})\n",
}
for (const [name, text] of Object.entries(DEATHS)) {
  await test(`${name} fails a file`, async (t) => {
    const { code, lastLine } = await run(t, { 'e2e/a.test.ts': text, 'e2e/b.test.ts': PASSING })
    t.equal(code, 1)
    t.equal(lastLine, '1 passed, 1 failed')
  })
}

await test('the time limit that a file sets ends with the file, not the process that it shares', async (t) => {
  const { lastLine } = await run(t, {
    'services/x/src/a.test.ts': `import t from 'tap'\nt.setTimeout(2000)\n${PASSING}`,
    'services/x/src/b.test.ts':
      "import { test } from 'tap'\nawait test('is slow', (t) => new Promise((done) => setTimeout(() => done(t.ok(true)), 3000)))\n",
  })
  t.equal(lastLine, '2 passed, 0 failed')
})

await test('files that need nothing share a process, and one that dies takes none with it', async (t) => {
  const tell =
    "import { test } from 'tap'\nawait test('pid', async (t) => t.comment(process.pid) ?? t.ok(1))\n"
  const shared = await run(t, {
    'services/x/src/a.test.ts': tell,
    'services/x/src/b.test.ts': tell,
    'services/y/src/c.test.ts': tell,
  })
  t.match(shared.printed, /^ok {4}services\/x \(2 files\)/m)
  t.match(shared.printed, /^ok {4}services\/y\/src\/c\.test\.ts/m)
  t.equal(shared.lastLine, '3 passed, 0 failed')

  const broken = await run(t, {
    'services/x/src/a.test.ts': 'process.exit(3)',
    'services/x/src/b.test.ts': PASSING,
  })
  t.equal(broken.code, 1)
  t.notMatch(broken.printed, /flaky/)
  t.equal(broken.lastLine, '1 passed, 1 failed')
})

await test('a file that breaks while another runs fails the run', async (t) => {
  const slow = PASSING.replace(
    't.ok(true)',
    'new Promise((end) => setTimeout(() => end(t.ok(1)), 500))',
  )
  for (const late of ["throw new Error('late')", "void Promise.reject(new Error('late'))"]) {
    // oxlint-disable-next-line no-await-in-loop -- two runs would share a folder
    const { code, lastLine } = await run(t, {
      'services/x/src/a.test.ts': `${PASSING}setTimeout(() => { ${late} }, 10)\n`,
      'services/x/src/b.test.ts': slow,
    })
    t.equal(code, 1)
    t.equal(lastLine, '2 passed, 1 failed')
  }
})

await test('a file that hangs behind one that is flaky fails the run', async (t) => {
  const { code, printed, lastLine } = await run(t, {
    'services/x/src/a.test.ts': FLAKY,
    'services/x/src/b.test.ts': `${PASSING}await new Promise(() => {})\n`,
    'services/x/src/c.test.ts': `${PASSING}await test('later', { skip: 'c' }, async () => {})\n`,
  })
  t.equal(code, 1)
  t.match(printed, /^skipped: services\/x\/src\/c\.test\.ts > later \(c\)$/m)
  t.equal(lastLine, '3 passed, 1 failed, 1 skipped')
})

await test('a file gets what it declares, and cannot use anything else', async (t) => {
  const look = `import { test } from 'tap'
import { spawnSync } from 'node:child_process'
const python = spawnSync('python3', ['--version'], { encoding: 'utf8' })
await test('environment', async (t) => {
  t.match(process.env.TUTTI_NATS_SERVER, 'add nats to the "// needs:" line')
  t.match(python.stderr, 'add python to the "// needs:" line')
  t.match(process.env, { TERM: 'dumb', NO_COLOR: '1' })
})
`
  const env = { TUTTI_NATS_SERVER: '', TERM: 'xterm' }
  const { lastLine } = await run(t, { 'e2e/a.test.ts': look }, { env })
  t.equal(lastLine, '3 passed, 0 failed')
})

await test('an unknown need is refused', async (t) => {
  const files = { 'e2e/a.test.ts': `// needs: coffee\n${PASSING}` }
  await t.rejects(run(t, files), {
    message:
      'e2e/a.test.ts needs coffee; want of nats, apiserver, kube-score, gitops, python, ocr, torch, netns, redis, prometheus, chromium, shells, faketime, triton, openvino, buckets, registry, cosign, perf-analyzer.',
  })
})

/** Sets up needs on a machine without Python, which it finds out late. */
async function provideNoPython(needs) {
  if (!needs.includes('python')) return process.env
  await sleep(500)
  throw new Error('there is no Python')
}

await test('a need that cannot be had ends the run at once', async (t) => {
  const endless = `// needs: nats
import { test } from 'tap'
await test('for ever', () => new Promise(() => setInterval(() => {}, 1000)))
`
  const files = { 'e2e/a.test.ts': endless, 'e2e/b.test.ts': `// needs: python\n${PASSING}` }
  await t.rejects(run(t, files, { provide: provideNoPython }), { message: 'there is no Python' })
})

await test('what a file writes to stderr is no test', async (t) => {
  const lines = ['file: e2e/b.test.ts', '{ total: 1, pass: 1 }', 'Subtest: x', '']
  const writing = `process.stderr.write(${JSON.stringify(lines.join('\n'))})\n${PASSING}`
  const { code, lastLine } = await run(t, { 'e2e/a.test.ts': writing })
  t.equal(code, 0)
  t.equal(lastLine, '1 passed, 0 failed')
  const dying = `${writing}\nprocess.kill(process.pid, 'SIGKILL')`
  t.equal((await run(t, { 'e2e/a.test.ts': dying })).code, 1)
})

await test('of files that share a process each is flaky by its own failure', async (t) => {
  const { code, printed } = await run(t, {
    'services/x/src/one/a.test.ts': FLAKY.replaceAll('second look', 'look at a'),
    'services/x/src/two/b.test.ts': FLAKY.replaceAll('second look', 'look at b'),
  })
  t.equal(code, 0)
  t.match(printed, /flaky: services\/x\/src\/one\/a\.test\.ts\n {4}.*on the look at a\n/)
  t.match(printed, /flaky: services\/x\/src\/two\/b\.test\.ts\n {4}.*on the look at b\n/)
})

await test('random inputs are those of TUTTI_SEED, and a property that fails tells it', async (t) => {
  const property = `import * as fc from 'fast-check'
import { test } from 'tap'
await test('holds', async () => fc.assert(fc.property(fc.nat(), (n) => n < 1000)))
await test('sampled', async (t) => t.fail('sample ' + fc.sample(fc.nat(), 5)))
`
  const printedOf = async (env) => {
    const { code, printed } = await run(t, { 'e2e/a.test.ts': property }, { env })
    t.equal(code, 1)
    t.match(printed, `# TUTTI_SEED=${env.TUTTI_SEED ?? 1}`)
    return [/\{ seed: \d+/.exec(printed)?.[0], /sample [\d,]+/.exec(printed)?.[0]]
  }
  const [seed, sample] = await printedOf({ TUTTI_SEED: '7' })
  t.equal(seed, '{ seed: 7')
  t.same(await printedOf({ TUTTI_SEED: '7' }), [seed, sample])
  const other = await printedOf({ TUTTI_SEED: '8' })
  t.equal(other[0], '{ seed: 8')
  t.not(other[1], sample)
  t.same(await printedOf({}), await printedOf({ TUTTI_SEED: '1' }), 'the tests of a change')
})

await test('what a file leaves running ends with it', async (t) => {
  const leaving = `import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { test } from 'tap'
const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'inherit' })
child.unref()
writeFileSync(new URL('pid', import.meta.url), String(child.pid))
await test('works', async (t) => t.ok(true))
process.exit(0)
`
  const { root, code } = await run(t, { 'e2e/a.test.ts': leaving })
  t.equal(code, 0)
  const pid = readFileSync(join(root, 'e2e', 'pid'), 'utf8')
  // A signal takes a moment; a process that it did not reach would go on for ever.
  while (isRunning(pid)) await sleep(20)
  t.pass('the process has ended')
})

await test('a reason at the end fails a run whose tests pass', async (t) => {
  const { code, printed } = await run(
    t,
    { 'e2e/a.test.ts': PASSING },
    { atEnd: async () => 'dull' },
  )
  t.equal(code, 1)
  t.match(printed, /^dull\n1 passed, 0 failed$/m)
})

/** A killed child of an ended process may stay as a zombie until init asks after it. */
function isRunning(pid) {
  const stat = `/proc/${pid}/stat`
  return existsSync(stat) && !/\) [ZX] /.test(readFileSync(stat, 'utf8'))
}
