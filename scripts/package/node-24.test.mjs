import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'

/** A package of the command that wants Node 24, with an empty cache. @param files - beside. @returns its folder. */
function testPackage(t, files) {
  const folder = t.testdir({
    bin: {},
    cache: {},
    'package.json': JSON.stringify({ type: 'module', config: { node: '24.0.0' } }),
    ...files,
  })
  copyFileSync(join(import.meta.dirname, 'node-24.js'), join(folder, 'bin', 'node-24.js'))
  return folder
}

await test('an installation that is stopped leaves nothing in the cache', async (t) => {
  const folder = testPackage(t, {
    // Says that it has begun, and goes on for ever.
    'npm-cli.js': `
      import { mkdirSync, writeFileSync } from 'node:fs'
      const folder = process.argv.find((one) => one.startsWith('--prefix=')).slice('--prefix='.length)
      mkdirSync(folder + '/node_modules')
      writeFileSync(folder + '/node_modules/half', '')
      process.kill(process.ppid, 'SIGTERM')
      setInterval(() => {}, 1000)`,
  })
  const script = "import('./bin/node-24.js').then(({ ensureNode }) => ensureNode())"
  const env = {
    ...process.env,
    XDG_CACHE_HOME: join(folder, 'cache'),
    npm_execpath: join(folder, 'npm-cli.js'),
  }
  const child = spawn(process.execPath, ['-e', script], { cwd: folder, env })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text) => (said += text))
  const [code] = await once(child, 'close')
  t.equal(code, 1)
  t.match(said, /could not be installed \(it was stopped\)/)
  t.same(readdirSync(join(folder, 'cache', 'tutti')), [])
})

await test('a folder without the program, which something has cleaned, is replaced', async (t) => {
  const name = `node-${process.platform}-${process.arch}`
  const folder = testPackage(t, {
    cache: { tutti: { [`${name}-24.0.0`]: { node_modules: { rest: '' } } } },
    'npm-cli.js': `
      import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
      const folder = process.argv.find((one) => one.startsWith('--prefix=')).slice('--prefix='.length)
      const bin = folder + '/node_modules/${name}/bin'
      mkdirSync(bin, { recursive: true })
      writeFileSync(bin + '/node', '#!/bin/sh\\n')
      chmodSync(bin + '/node', 0o755)`,
  })
  const script =
    "import('./bin/node-24.js').then(async ({ ensureNode }) => console.log(await ensureNode()))"
  const env = {
    ...process.env,
    XDG_CACHE_HOME: join(folder, 'cache'),
    npm_execpath: join(folder, 'npm-cli.js'),
  }
  const { status, stdout, stderr } = spawnSync(process.execPath, ['-e', script], {
    cwd: folder,
    env,
    encoding: 'utf8',
  })
  t.equal(status, 0, stderr)
  const cache = join(folder, 'cache', 'tutti')
  t.equal(stdout.trim(), join(cache, `${name}-24.0.0`, 'node_modules', name, 'bin', 'node'))
  t.match(stderr, /installing Node 24\.0\.0 into .*\n.*installed Node 24\.0\.0 in \d+ s\n$/)
  t.same(readdirSync(cache), [`${name}-24.0.0`], 'nothing else stays')
})

await test('while npm installs, the time is told', async (t) => {
  const name = `node-${process.platform}-${process.arch}`
  const folder = testPackage(t, {
    // Goes on until the file is there.
    'npm-cli.js': `
      import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
      const folder = process.argv.find((one) => one.startsWith('--prefix=')).slice('--prefix='.length)
      const bin = folder + '/node_modules/${name}/bin'
      mkdirSync(bin, { recursive: true })
      writeFileSync(bin + '/node', '#!/bin/sh\\n')
      chmodSync(bin + '/node', 0o755)
      setInterval(() => existsSync(new URL('told', import.meta.url)) && process.exit(0), 10)`,
  })
  const script =
    "import('./bin/node-24.js').then(async ({ ensureNode }) => ensureNode({ everyMs: 20 }))"
  const env = {
    ...process.env,
    XDG_CACHE_HOME: join(folder, 'cache'),
    npm_execpath: join(folder, 'npm-cli.js'),
  }
  const child = spawn(process.execPath, ['-e', script], { cwd: folder, env })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text) => {
    said += text
    if (/installing Node 24\.0\.0: \d s\n/.test(said)) writeFileSync(join(folder, 'told'), '')
  })
  const [code] = await once(child, 'close')
  t.equal(code, 0, said)
  t.match(
    said,
    /(tutti: installing Node 24\.0\.0: \d s\n)+tutti: installed Node 24\.0\.0 in \d s\n$/,
  )
})

/** The wrapper of a Node that is too old, at a terminal, before a command. @returns what the command prints first, and the end. */
async function runWrapper(t, main) {
  const folder = t.testdir({
    bin: {
      'node-24.js':
        'export const isWanted = () => false\nexport const ensureNode = async () => process.execPath',
    },
    'package.json': '{"type":"module"}',
    node_modules: { '@tutti': { cli: { dist: { 'main.js': main } } } },
  })
  copyFileSync(join(import.meta.dirname, 'tutti.js'), join(folder, 'bin', 'tutti.js'))
  const command = `exec '${process.execPath}' '${join(folder, 'bin', 'tutti.js')}'`
  const child = spawn('script', ['-qefc', command, '/dev/null'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  let said = ''
  const wrapper = new Promise((resolve) => {
    child.stdout.setEncoding('utf8').on('data', (text) => {
      said += text
      const [, pid] = /wrapper (\d+)\r?\n/.exec(said) ?? []
      if (pid !== undefined) resolve(Number(pid))
    })
  })
  return { wrapper: await wrapper, ended: once(child, 'close').then(([code]) => ({ code, said })) }
}

const SAYS_WRAPPER = 'console.log(`wrapper ${process.ppid}`); setInterval(() => {}, 1000);'

for (const signal of ['SIGINT', 'SIGTERM']) {
  await test(`${signal} to the wrapper at a terminal reaches the command, and its code comes back`, async (t) => {
    const main = `process.on('${signal}', () => { console.log('got it'); process.exit(7) });`
    const { wrapper, ended } = await runWrapper(t, main + SAYS_WRAPPER)
    process.kill(wrapper, signal)
    const { code, said } = await ended
    t.equal(code, 7)
    t.match(said, /got it/)
  })
}

await test('a signal that ends the command ends the wrapper too', async (t) => {
  const { wrapper, ended } = await runWrapper(t, SAYS_WRAPPER)
  process.kill(wrapper, 'SIGTERM')
  // As a shell says it.
  t.equal((await ended).code, 128 + 15)
})
